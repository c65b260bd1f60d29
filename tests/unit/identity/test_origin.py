import pytest

from trainshed.identity import foreign_request

LOOPBACK = frozenset({"127.0.0.1"})
NAMED = frozenset({"train.example.com", "10.0.0.7:8080", "[2001:db8::1]:8080"})


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1:65535", "[::1]", "[::1]:80"]
)
def test_every_loopback_name_is_ours_on_loopback(host: str) -> None:
    assert foreign_request(host, None, LOOPBACK) is None


@pytest.mark.parametrize(
    "host", ["train.example.com", "Train.Example.com:443", "10.0.0.7:8080", "[2001:DB8::1]:8080"]
)
def test_our_own_names_are_ours(host: str) -> None:
    assert foreign_request(host, None, NAMED) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.2",
        "127.1", "2130706433", "0.0.0.0:8080", "[::]", "[::ffff:127.0.0.1]", "localhost.", "xlocalhost",
    ],
)  # fmt: skip
def test_any_other_name_is_refused_and_told(host: str) -> None:
    sentence = foreign_request(host, None, LOOPBACK)
    assert sentence is not None and host in sentence


def test_loopback_is_not_ours_where_the_server_has_other_names() -> None:
    assert foreign_request("localhost:8080", None, NAMED) is not None


def test_a_name_with_a_port_is_ours_at_that_port_only() -> None:
    assert foreign_request("10.0.0.7:8081", None, NAMED) is not None
    assert foreign_request("10.0.0.7", None, NAMED) is not None


@pytest.mark.parametrize(
    "host",
    [
        None, "", " ", "localhost:", "localhost:x", "localhost:99999", "localhost:0", "localhost:80:80",
        "user@localhost", "localhost/", "localhost ", " localhost", "local host", "localhost\n",
        "localhost,evil", "::1", "[::1", "[]", "localhost:-1", "localhost:٣", "ﬂocalhost", "localhost\0",
    ],
)  # fmt: skip
def test_a_malformed_host_is_refused(host: str | None) -> None:
    sentence = foreign_request(host, None, LOOPBACK)
    assert sentence is not None and "malformed" in sentence


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8080", "http://localhost:8080"),
        ("127.0.0.1:8080", "HTTP://127.0.0.1:8080"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("localhost", "https://localhost:443"),
        ("[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_our_own_pages_may_call(host: str, origin: str) -> None:
    assert foreign_request(host, origin, LOOPBACK) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://evil.example", "http://localhost:3000", "http://127.0.0.1:8080", "https://localhost",
        "http://localhost:8080.evil.example", "http://localhost:8080@evil.example", "http://localhost:8080/path",
        "ftp://localhost:8080", "file://", "chrome-extension://abc", "localhost:8080",
        "http://localhost:8080 http://evil.example", "http://localhost:8080\n",
    ],
)  # fmt: skip
def test_pages_of_any_other_origin_may_not(origin: str) -> None:
    sentence = foreign_request("localhost:8080", origin, LOOPBACK)
    assert sentence is not None and "refused" in sentence


@pytest.mark.parametrize(("site", "refused"), [("same-origin", False), ("none", False), ("cross-site", True)])
def test_what_the_browser_says_about_the_site_counts(site: str, refused: bool) -> None:
    assert (foreign_request("localhost:8080", None, LOOPBACK, site) is not None) is refused


def test_another_port_of_the_same_machine_is_another_origin() -> None:
    assert foreign_request("localhost:8080", None, LOOPBACK, "same-site") is not None
