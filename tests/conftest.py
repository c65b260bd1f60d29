"""What tests of every folder may ask for, and the order in which their files are run."""

import gc
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.containers.engine import podman, why_not
from tests.containers.registry import registry
from tests.faults import sentence
from tests.kubernetes import cluster as kubernetes
from tests.kubernetes.cluster import cluster
from tests.live import LiveServer
from tests.programs import make_folder, prebuilt_programs

__all__ = ["cluster", "podman", "registry", "sentence"]

# How long one example takes says nothing on a busy machine.
settings.register_profile("trainshed", deadline=None)
settings.load_profile("trainshed")
LiveServer.copies = True
# A shell lets what it runs in the background ignore Ctrl-C, and whoever tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tools() -> Path:
    """Where the programs in C lie that are compiled once for all tests."""
    return prebuilt_programs()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.add_cleanup(make_folder())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All that is made for the tests stays to the end: who looks for garbage need not look there, ever."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whoever asks for an engine or a cluster needs it, said or not: what leaves those out starts none."""
    if "podman" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.containers)
    if "cluster" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.cluster)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first, so that workers end together; each stays whole, else as shuffled.

    Those that share a browser come next, one after the other.
    """
    long = {item.path for item in items if takes_long(item)}
    items.sort(key=lambda item: 1 if item.path.parent.name == "browser" else 2 * (item.path not in long))


def takes_long(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) is not None for name in ("slow", "containers", "cluster"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where containers or clusters cannot run, what is marked so is skipped before its set-up."""
    if item.get_closest_marker("containers") and (reason := why_not()):
        pytest.skip(reason)
    if item.get_closest_marker("cluster") and (reason := kubernetes.why_not()):
        pytest.skip(reason)
