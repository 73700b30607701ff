"""Bytes: hashes, masks, scans and characters, on which words and all measures stand. Imports no other kernels."""
