"""Replay of recorded sessions, and what an audit measures on them."""
