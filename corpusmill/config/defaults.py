"""What holds where nothing is said. Nothing is imported here: `mill --help` reads it."""

DEFAULT_STORE = "./.corpusmill/store"
"""Made by `build` where it is missing, unlike any other."""
