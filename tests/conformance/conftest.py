"""Servers shared by the conformance tests, which name their own jobs and need not know each other."""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.live import LiveServer

# Far more than the machine has: what is tested here is the API, not waiting.
ROOMY = ("--cpus", "256", "--memory", "1TiB")


@pytest.fixture(scope="session")
def server() -> Iterator[LiveServer]:
    """A server that asks for its token."""
    with LiveServer(*ROOMY) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(scope="session")
def open_server() -> Iterator[LiveServer]:
    """A server that asks for no token."""
    with LiveServer(*ROOMY, "--no-auth") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(scope="session")
def strict_server() -> Iterator[LiveServer]:
    """A small server on which a larger job waits."""
    with LiveServer("--cpus", "4", "--memory", "16GiB", "--fit", "strict") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


_numbers = itertools.count()


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Makes a name nobody else uses."""
    return lambda stem: f"{stem}-{os.getpid()}-{next(_numbers)}"
