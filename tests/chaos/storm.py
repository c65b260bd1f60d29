"""Clients at work while something is killed again and again; then everything is checked.

The tests of this folder call `torment_and_check` with what kills. The seed fixes the choices, not the timing:
two runs with one seed are alike, not the same.
"""

import random
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.checker import Final, check
from tests.chaos.clients import CLIENTS, World
from tests.chaos.history import History
from tests.chaos.nemesis import kinds_of_death
from tests.chaos.notes import read_notes
from tests.chaos.settle import settle
from tests.live import LiveServer

MOST_TOLD = 40  # violations in the failure's message; all are in the file

Torment = Callable[[World, random.Random, int], None]  # kills so often; all is up afterwards


def torment_and_check(
    server: LiveServer, torment: Torment, rounds: int, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fails with every promise that was broken. The server is closed afterwards."""
    with capsys.disabled():
        print(f"\nchaos: --rounds={rounds} --seed={seed}", flush=True)
    world = World(server, History(), server.base / "notes")
    world.notes.mkdir()
    try:
        final, broken = storm(world, torment, rounds, seed)
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


def storm(world: World, torment: Torment, rounds: int, seed: int) -> tuple[Final, list[str]]:
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
