"""The pure core: no I/O, no clock, no randomness, no framework. Values in, values out."""
