"""Training of small models: quality classifiers and language models, from texts (`corpus`) to a file with its card."""
