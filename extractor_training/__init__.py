"""How the extractor's models are made from pages with known text; nothing here is needed to extract."""
