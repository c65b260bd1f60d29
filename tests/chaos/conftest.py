"""How hard the chaos test tries, and with which chance: `pytest tests/chaos --rounds=300 --seed=42`.

Each everyday run has a seed of its own, so it needs few rounds: many runs together are many. `make chaos`
has 300.
"""

import secrets
from pathlib import Path

import pytest

ROUNDS = 10  # kills in the everyday suite


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=ROUNDS, help="how often the server is killed")
    parser.addoption("--faults", type=int, default=None, help="how often a cluster is harmed")
    parser.addoption("--seed", type=int, default=None, help="repeats the choices of an earlier run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Patience that grows with the work: the machine may be busy, and a start then takes seconds."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300 + 15 * _rounds(config)))


def _rounds(config: pytest.Config) -> int:
    # Where the whole suite is run this file is found too late for its options to be known.
    return int(config.getoption("rounds", None) or ROUNDS)


@pytest.fixture(scope="session")
def rounds(request: pytest.FixtureRequest) -> int:
    return _rounds(request.config)


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("seed", None)
    return secrets.randbelow(10**9) if given is None else int(given)
