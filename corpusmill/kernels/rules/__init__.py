"""Rules: read and checked (`rules`, `faults`), applied to measures (`bounds`)."""
