"""The server is killed with SIGKILL again and again while clients work; then everything is checked.

pytest tests/chaos --rounds=300 --seed=42
"""

import pytest

from tests.chaos.nemesis import torment
from tests.chaos.settle import ROOM
from tests.chaos.storm import torment_and_check
from tests.live import LiveServer
from tests.network import quiet_port

pytestmark = pytest.mark.slow


@pytest.mark.fault(
    "The server",
    "Servers, programs and clients are killed at random, again and again",
    "No acknowledged job is lost, none runs twice, and every job ends.",
)
def test_whatever_is_killed_nothing_acknowledged_is_lost_and_nothing_runs_twice(
    rounds: int, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    torment_and_check(LiveServer(*ROOM, port=quiet_port()), torment, rounds, seed, capsys)
