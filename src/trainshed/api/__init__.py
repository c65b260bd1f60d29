"""The HTTP interface: parses requests, calls a service, renders the answer. It makes no decisions."""
