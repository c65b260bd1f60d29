"""What a server is called by the commands and jobs of its own machine."""

import pytest

from trainshed.serving.serve import local_name


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("::1", "[::1]"),
        ("shed.example", "shed.example"),
    ],
)
def test_a_server_that_listens_everywhere_is_called_by_loopback(host: str, name: str) -> None:
    assert local_name(host) == name
