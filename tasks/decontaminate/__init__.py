"""Decontaminate: screen shards for benchmark items (`screen`), exempt phrases in common use (`exemption`)."""
