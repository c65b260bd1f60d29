"""Stand-ins for the outside world that keep the promises of the real thing, for tests of everything above.

They may assume an event loop and nothing else. They are held to the contract suites in tests/contracts.
"""

from trainshed.testing.backend import FakeBackend, FakeMachine
from trainshed.testing.runtimes import FakeRuntimes

__all__ = ["FakeBackend", "FakeMachine", "FakeRuntimes"]
