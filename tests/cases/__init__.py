"""Reports from the field, played against the product."""
