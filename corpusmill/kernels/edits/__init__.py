"""Edits: byte spans cut or masked in stored texts (`spans`), and the line tests of rules that find them (`lines`)."""
