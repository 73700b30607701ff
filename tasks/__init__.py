"""Task units: read a shard, call kernels, write a shard, return a receipt. Plain functions; no Prefect."""
