"""What tests of every folder may ask for."""

import pytest

from tests.engine import podman, why_not
from tests.registry import registry

__all__ = ["podman", "registry"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where containers cannot run, what is marked so is skipped before anything is set up for it."""
    if item.get_closest_marker("containers") and (reason := why_not()):
        pytest.skip(reason)
