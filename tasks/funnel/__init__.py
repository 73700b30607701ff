"""What is counted and said of a build: rows of the funnel, columns, readers' counts, limits, cautions."""
