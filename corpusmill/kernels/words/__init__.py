"""Words: one definition of a word (`scan`), the word table of a batch (`table`), hashes of words alone (`hashes`)."""
