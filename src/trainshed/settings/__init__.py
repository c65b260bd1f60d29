"""The server's settings: one table, and the files that a setting may name."""
