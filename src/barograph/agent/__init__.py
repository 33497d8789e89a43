"""The ready-made coding agent: its tools, its sample project and the demo that needs no API key."""
