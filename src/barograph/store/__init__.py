"""Where logs live: one Protocol, one contract test, several backends."""
