"""Rows: which column becomes which field of a document; values of Arrow columns, JSON objects one by one."""
