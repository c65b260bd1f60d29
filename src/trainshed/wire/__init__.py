"""Google's JSON, both ways: what clients send becomes core values, what the core knows becomes answers."""
