"""Containers of archives: gzip members, zstd and LZ4 frames, and parts of a large file."""
