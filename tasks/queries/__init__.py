"""Questions about datasets and recipes that build nothing: plan, compare, export, what-if."""
