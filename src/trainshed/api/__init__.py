"""The HTTP edge: Google's words in and out, nothing decided here."""
