"""Serves what the assembly made: the server's sockets, their protocols, and its start and end."""
