"""Whose word counts for the address that a call comes from."""

import pytest

from trainshed.identity.proxies import TrustedProxies

PROXIES = TrustedProxies(["10.0.0.7", "2001:db8::/32"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("10.0.0.7", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.7", "192.0.2.1, 198.51.100.2", "198.51.100.2"),
        ("10.0.0.7", "6.6.6.6, 192.0.2.1, 2001:db8::5", "192.0.2.1"),
        ("10.0.0.7", "192.0.2.1, 10.0.0.7", "192.0.2.1"),
        ("10.0.0.7", "[2001:DB9::1]:443", "2001:db9::1"),
        ("10.0.0.7", "192.0.2.1:5555", "192.0.2.1"),
        ("::ffff:10.0.0.7", "::ffff:192.0.2.1", "192.0.2.1"),
        ("10.0.0.7", "10.0.0.7", "10.0.0.7"),
        ("10.0.0.7", "", "10.0.0.7"),
        ("10.0.0.7", "192.0.2.1, unknown", "10.0.0.7"),
        ("10.0.0.7", "192.0.2.1, <script>", "10.0.0.7"),
        ("192.0.2.9", "192.0.2.1", "192.0.2.9"),
        ("", "192.0.2.1", ""),
    ],
)
def test_the_last_who_is_not_trusted_is_the_caller(peer: str, forwarded: str, caller: str):
    assert PROXIES.caller(peer, forwarded) == caller


def test_without_proxies_nobody_is_believed():
    assert TrustedProxies([]).caller("10.0.0.7", "192.0.2.1") == "10.0.0.7"
