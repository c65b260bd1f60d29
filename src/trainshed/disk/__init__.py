"""Files on the disk of the server, for all adapters: durable, opened safely, watched, and SQLite's."""
