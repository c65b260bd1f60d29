"""What several of the suites here ask for."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where what is compiled once for all of them lies."""
    return tmp_path_factory.mktemp("tools")
