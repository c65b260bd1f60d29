"""Ports for servers that are killed and started again while clients knock."""

import random
import socket

# Below what backends draw for replicas, and far below what the kernel gives to clients: a client that knocks
# at a closed port of its own range is, now and then, connected to itself, and the server finds it taken.
FIRST, LAST = 2_000, 9_900


def quiet_port() -> int:
    for _ in range(1000):
        port = random.SystemRandom().randrange(FIRST, LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
