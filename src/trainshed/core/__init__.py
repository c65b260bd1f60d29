"""The plain-Python heart: nouns, rules, ports and errors. No I/O, no clock, no third party."""
