"""Translates JSON of clients to core values and back. Called by `api`. No I/O, no clock."""
