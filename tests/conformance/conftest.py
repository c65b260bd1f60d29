"""Servers, and an interpreter with the SDK, which the conformance tests share: they name their own jobs."""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.sdk_session import Sdk
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
def mortal() -> Iterator[LiveServer]:
    """A server that tests kill, and start again."""
    with LiveServer(*ROOMY) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(scope="session")
def strict_server() -> Iterator[LiveServer]:
    """A small server on which a larger job waits."""
    with LiveServer("--cpus", "4", "--memory", "16GiB", "--fit", "strict") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(scope="session")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdk]:
    """One for all files: importing the SDK takes seconds, and each call says which server it means."""
    session = Sdk(tmp_path_factory.mktemp("sdk") / "sdk.log")
    yield session
    session.close()


_numbers = itertools.count()


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Makes a name nobody else uses."""
    return lambda stem: f"{stem}-{os.getpid()}-{next(_numbers)}"
