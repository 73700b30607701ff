"""Checkpoints of a run: written, committed, found again, compared between ranks, kept or removed; who trains a run now.

Public: `commits` (which exist; no torch), `saver`, `checkpoint` (write and load), `claims`, `retention`, `replicas`.
"""
