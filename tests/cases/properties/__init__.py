"""One function for each property; each yields, in words, what does not hold."""
