"""Agents to lint: one that keeps its prefix, and one for each way not to."""
