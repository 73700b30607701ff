"""HTML to main text: modes over Resiliparse and trafilatura, and a sandbox of killable workers around them."""
