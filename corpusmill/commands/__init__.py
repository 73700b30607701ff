"""The verbs of `mill` that need the library alone. Their modules are imported when a verb is used."""
