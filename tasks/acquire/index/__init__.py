"""The index of a crawl: which pages a recipe selects, and which parts of the index speak of them."""
