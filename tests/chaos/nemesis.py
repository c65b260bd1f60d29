"""The nemesis: kill -9 to the server at the worst moments it can think of, and now and then to a replica.

It decides by chance (seeded) and knows the server only from outside. A server that does not come up again is
for the caller to report.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.chaos.clients import World
from tests.chaos.notes import read_notes

MOST_TOUCHED = 2  # how often the runs of one job are killed: less than it may be restarted


def torment(world: World, rng: random.Random, rounds: int) -> None:
    """Kill and start the server so often; it is up afterwards."""
    styles = list(_STYLES)
    burst = 0
    for number in range(rounds):
        if not burst and rng.random() < 0.05:
            burst = 3
        if burst:
            burst -= 1
            style = rng.choice((_at_birth, _while_opening))
        else:
            style = rng.choices(styles, list(_STYLES.values()))[0]
        style(world, rng)
        world.server.kill()
        world.history.add("kill-server", "ok", style=style.__name__, round=number)
        world.server.start(wait=False)
    world.server.wait_ready()


def _at_birth(world: World, rng: random.Random) -> None:
    time.sleep(rng.uniform(0, 0.05))


def _while_opening(world: World, rng: random.Random) -> None:
    """From when it owns the home: it looks through all there is and begins to act on it."""
    lock = world.server.home / "trainshed.db.lock"
    deadline = time.monotonic() + 60
    while lock.read_text().strip() != str(world.server.pid) and time.monotonic() < deadline:
        if world.server.process is not None and world.server.process.poll() is not None:
            world.server.wait_ready()  # which tells its last words
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.2))


def _when_ready(world: World, rng: random.Random) -> None:
    world.server.wait_ready()
    time.sleep(rng.uniform(0, 0.1))


def _at_work(world: World, rng: random.Random) -> None:
    world.server.wait_ready()
    time.sleep(rng.uniform(0.2, 1.0))
    if rng.random() < 0.6:
        _kill_a_run(world, rng)
        time.sleep(rng.uniform(0, 0.4))


def _in_a_request(world: World, rng: random.Random) -> None:
    """Within milliseconds of somebody asking for something."""
    world.server.wait_ready()
    time.sleep(rng.uniform(0, 0.5))
    world.moment.clear()
    world.moment.wait(2)
    time.sleep(rng.uniform(0, 0.03))


_STYLES: dict[Callable[[World, random.Random], None], float] = {
    _at_birth: 0.1,
    _while_opening: 0.2,
    _when_ready: 0.1,
    _at_work: 0.3,
    _in_a_request: 0.3,
}


def _kill_a_run(world: World, rng: random.Random) -> None:
    """kill -9 to a program, or to the keeper that holds it. Written down before it is done."""
    notes = read_notes(world.notes)
    ended = {note.run for note in notes if note.what == "end"}
    touched = [fact.job for fact in world.history.facts("kill-run")]
    living = [
        note
        for note in notes
        if note.what == "start" and note.run not in ended and touched.count(note.job) < MOST_TOUCHED
    ]
    rng.shuffle(living)
    for note in living:
        with suppress(OSError):
            handle = os.pidfd_open(note.pid)
            try:
                # With the handle open: it surely is the handle of the one looked at.
                if f"TRAINSHED_RUN={note.run}".encode() not in Path(f"/proc/{note.pid}/environ").read_bytes():
                    continue
                keeper = _parent(note.pid) if rng.random() < 0.3 else None
                world.history.add("kill-run", "ok", job=note.job, run=note.run, keeper=keeper)
                if keeper is None:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                else:
                    os.kill(keeper, signal.SIGKILL)
                return
            finally:
                os.close(handle)


def _parent(pid: int) -> int | None:
    """The keeper of a program; None where its parent is none."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    parent = int(fields[1])
    command = Path(f"/proc/{parent}/cmdline").read_bytes()
    return parent if b"keeper" in command else None


def kinds_of_death(world: World) -> dict[str, int]:
    """How often each style was used; for the summary."""
    counts: dict[str, int] = {}
    for fact in world.history.facts("kill-server"):
        counts[fact.data["style"]] = counts.get(fact.data["style"], 0) + 1
    for fact in world.history.facts("kill-run"):
        name = "keeper" if fact.data["keeper"] else "program"
        counts[name] = counts.get(name, 0) + 1
    return counts
