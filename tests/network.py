"""What tests need of this machine's network."""

import socket

import pytest


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="needs an IPv6 loopback: sysctl disable_ipv6=0")
