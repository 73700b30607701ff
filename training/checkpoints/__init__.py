"""Checkpoints of a run: written, committed, found again, compared between ranks, kept or removed; who trains a run now.

Public: `commits` (which exist; no torch), `checkpoint` (save and load), `claims`, `retention`, `replicas`.
"""
