"""Fetching: HTTP and S3 by ranges, retries, rate limit, allowed hosts, checksums of what was read."""
