"""PostgreSQL is killed with SIGKILL again and again while clients work; then everything is checked.

    pytest tests/chaos/test_postgres_crashes.py --rounds=300 --seed=42

It loses every commit that it was not asked to flush. Now and then the server is killed with it, or before it.
"""

import random
import time
from functools import partial

import pytest

from tests.chaos.clients import World
from tests.chaos.settle import ROOM
from tests.chaos.storm import torment_and_check
from tests.contracts.postgres import Server, postgres
from tests.live import LiveServer
from tests.network import quiet_port

pytestmark = [pytest.mark.slow, pytest.mark.needs_postgres]
__all__ = ["postgres"]

FEWER = 4  # a round takes longer than a kill of the server


@pytest.mark.fault(
    "The database",
    "PostgreSQL crashes",
    "Requests are answered with 503 while it is away, and programs run on. Then every job goes on.",
)
def test_whenever_the_database_crashes_nothing_acknowledged_is_lost_or_stuck_or_runs_twice(
    postgres: Server, rounds: int, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    database = {"TRAINSHED_DATABASE": postgres.new_database()}
    server = LiveServer(*ROOM, port=quiet_port(), env=database)
    torment_and_check(server, partial(crash_again_and_again, postgres), rounds // FEWER, seed, capsys)


def crash_again_and_again(postgres: Server, world: World, rng: random.Random, rounds: int) -> None:
    for number in range(rounds):
        _wait_for_a_bad_moment(world, rng)
        dies = rng.choice(("database", "database", "database", "server first", "database first"))
        if dies == "server first":
            world.server.kill()
        postgres.crash()
        if dies == "database first":
            time.sleep(rng.uniform(0, 0.3))
            world.server.kill()
        world.history.add("kill-server", "ok", style=dies, round=number)
        time.sleep(rng.choice((0.0, rng.uniform(0, 2.0))))
        postgres.start()
        if dies != "database":
            world.server.start(wait=False)
        world.server.wait_ready()


def _wait_for_a_bad_moment(world: World, rng: random.Random) -> None:
    """While jobs start, run and end; half of the time within milliseconds of a request."""
    time.sleep(rng.uniform(0.2, 2.0))
    if rng.random() < 0.5:
        world.moment.clear()
        world.moment.wait(2)
        time.sleep(rng.uniform(0, 0.05))
