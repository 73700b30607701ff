"""Personal data."""

MASKS: dict[str, str] = {}
