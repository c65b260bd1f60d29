"""What tests need of this machine's network."""

import random
import socket

import pytest

# Below what backends draw for replicas, and far below what the kernel gives to clients: a client that knocks
# at a closed port of its own range is, now and then, connected to itself, and the server finds it taken.
FIRST, LAST = 2_000, 9_900


def quiet_port() -> int:
    """A free port, for a server that begins later or again while clients knock."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(FIRST, LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="needs an IPv6 loopback: sysctl disable_ipv6=0")
