"""One adapter for each op."""
