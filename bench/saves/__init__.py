"""Checkpoints, beside training."""
