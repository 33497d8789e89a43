"""Pure codecs, one wire format each."""
