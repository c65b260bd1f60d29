"""The kinds of jobs the chaos test submits, and what must become of each whatever happens to the server."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.live import pool

PROGRAM = Path(__file__).with_name("program.py")
SUCCEEDED, FAILED, CANCELLED = "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"

Runs = frozenset[tuple[int, int]]  # (attempt, restart) of one replica

ONCE: Runs = frozenset({(0, 0)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    name: str
    pools: tuple[tuple[str, int], ...]  # what the program does, how many replicas
    state: str = SUCCEEDED
    message: str = ""  # part of the error's message
    runs: Runs = ONCE  # of every replica, where nobody interferes
    exactly: bool = True  # all of `runs` happen; else some of them
    seconds: tuple[float, float] = (0.0, 0.3)
    lines: int = 4
    scheduling: dict[str, Any] = field(default_factory=dict[str, Any])
    weight: int = 2
    must_cancel: bool = False  # it would never end by itself


_SOON = {"backoff": "0.1s"}

KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="quick", pools=(("works", 1),), weight=6),
        Kind(name="long", pools=(("works", 1),), seconds=(1.0, 4.0), lines=12, weight=4),
        Kind(name="fails", pools=(("fails", 1),), state=FAILED, message="exited with code 3", weight=3),
        Kind(
            name="stumbles",
            pools=(("stumbles", 1),),
            runs=frozenset({(0, 0), (0, 1)}),
            scheduling={"restartRule": _SOON},
        ),
        Kind(
            name="dies",
            pools=(("dies", 1),),
            state=FAILED,
            message="was killed by signal 9",
            runs=frozenset({(0, 0), (0, 1), (1, 0), (1, 1)}),
            scheduling={"restartRule": {**_SOON, "maxReplicaRestarts": 1, "maxJobRetries": 1}},
        ),
        Kind(
            name="deaf",
            pools=(("deaf", 1),),
            state=CANCELLED,
            scheduling={"gracePeriod": "0.5s"},
            must_cancel=True,
        ),
        Kind(name="leaky", pools=(("leaky", 1),)),
        Kind(name="gang", pools=(("works", 1), ("works", 2)), seconds=(0.3, 1.5)),
        Kind(
            name="gang again",
            pools=(("works", 1), ("stumbles", 2)),
            seconds=(0.3, 1.5),
            runs=frozenset({(0, 0), (1, 0)}),
            exactly=False,
            scheduling={"restartJobOnWorkerRestart": True, "restartRule": _SOON, "gracePeriod": "1s"},
        ),
    )
}


def draw(rng: random.Random) -> Kind:
    kinds = list(KINDS.values())
    return rng.choices(kinds, [kind.weight for kind in kinds])[0]


def body(kind: Kind, notes: Path, rng: random.Random) -> dict[str, Any]:
    """The job as it is posted."""
    seconds = rng.uniform(*kind.seconds)
    specs = [
        # The primary outlasts the others, so that what happens to them happens before it has succeeded.
        pool(command(does, notes, kind.lines, seconds if number == 0 else seconds / 3), replicas=count)
        for number, (does, count) in enumerate(kind.pools)
    ]
    return {"displayName": kind.name, "jobSpec": {"workerPoolSpecs": specs, "scheduling": kind.scheduling}}


def command(does: str, notes: Path, lines: int, seconds: float) -> list[str]:
    return ["python", "-I", "-S", str(PROGRAM), str(notes), does, str(lines), f"{seconds:.3f}"]
