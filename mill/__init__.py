"""The command `mill`: every verb, and the demo. It may import all packages; no package imports it.

Public: `mill.cli.main`. A verb is a function in one of these files and a line in the table of `cli.py`.
"""
