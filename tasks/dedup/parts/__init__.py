"""The search for near duplicates of more documents than fit memory, cut into units."""
