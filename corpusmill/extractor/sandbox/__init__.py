"""Extraction in processes that may be killed: limits of time and memory, and a page that costs itself only. Public:
`sandbox.Sandbox`.
"""
