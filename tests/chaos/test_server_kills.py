"""The server is killed with SIGKILL again and again while clients work; then everything is checked.

    pytest tests/chaos --rounds=300 --seed=42

The seed fixes the choices, not the timing: two runs with one seed are alike, not the same.
"""

import random
import shutil
import tempfile
import threading
from pathlib import Path

import pytest

from tests.chaos.checker import Final, check
from tests.chaos.clients import CLIENTS, World
from tests.chaos.history import History
from tests.chaos.nemesis import kinds_of_death, torment
from tests.chaos.notes import read_notes
from tests.chaos.port import quiet_port
from tests.chaos.settle import ROOM, settle
from tests.live import LiveServer

pytestmark = pytest.mark.slow

MOST_TOLD = 40  # violations in the failure's message; all are in the file


def test_whatever_is_killed_nothing_acknowledged_is_lost_and_nothing_runs_twice(
    rounds: int, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\nchaos: --rounds={rounds} --seed={seed}", flush=True)
    server = LiveServer(*ROOM, port=quiet_port())
    world = World(server, History(), server.base / "notes")
    world.notes.mkdir()
    try:
        final, broken = storm(world, rounds, seed)
        with capsys.disabled():
            print(f"chaos: {len(final.jobs)} jobs left, {kinds_of_death(world)}", flush=True)
    except Exception as error:
        error.add_note(f"seed {seed}; history in {keep(world, seed, [repr(error)])}")
        raise
    else:
        if broken:
            kept, told = keep(world, seed, broken), "\n  ".join(broken[:MOST_TOLD])
            pytest.fail(f"seed {seed}: {len(broken)} promises broken; history in {kept}:\n  {told}", False)
    finally:
        world.enough.set()
        server.close()


def storm(world: World, rounds: int, seed: int) -> tuple[Final, list[str]]:
    """Clients at work, the nemesis among them; the final state and what is wrong with it."""
    rng = random.Random(seed)
    world.server.start()
    threads = [
        threading.Thread(
            target=client, args=(world, random.Random(rng.random()), f"{seed}-{number}"), daemon=True
        )
        for number, client in enumerate(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    failure: list[str] = []
    try:
        torment(world, random.Random(rng.random()), rounds)
    except AssertionError as error:  # the server did not come up again
        failure.append(str(error)[-3000:])
    world.enough.set()
    if failure:
        return Final(), failure
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a client did not get its answer within two minutes"
    final = settle(world)
    return final, check(list(world.history.facts()), read_notes(world.notes), final)


def keep(world: World, seed: int, broken: list[str]) -> Path:
    """Everything one needs to find out what happened."""
    folder = Path(tempfile.mkdtemp(prefix=f"trainshed-chaos-{seed}-"))
    world.history.save(folder / "history.jsonl")
    (folder / "broken").write_text("\n".join(broken) + "\n")
    shutil.copytree(world.server.base, folder / "server", ignore_dangling_symlinks=True, dirs_exist_ok=True)
    return folder
