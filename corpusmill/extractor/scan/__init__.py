"""One pass over the bytes of a page: text, lines and boxes (`scan`), and the depth of its elements (`depth`)."""
