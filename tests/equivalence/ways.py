"""Runs programs both ways, fresh and warm, each on a backend of its own, and keeps what came of them."""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.contracts.backend_bench import pauses, until
from tests.equivalence.programs import Program
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.process import ProcessBackend
from trainshed.backends.process.interpreters import Interpreters
from trainshed.backends.process.keeper import Keeper
from trainshed.backends.process.record import parse
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import READY, PreparationProgress, Readiness
from trainshed.core.jobs.replica import Exit
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Placement
from trainshed.core.supplies.runtime import RuntimeNeed, WarmState
from trainshed.testing.run_files import FolderRunFiles

IMAGE = "trainshed/python:3"


@dataclass(frozen=True, slots=True)
class Outcome:
    exit: Exit | None
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Both:
    fresh: Outcome
    warm: Outcome
    was_forked: bool


@dataclass(frozen=True, slots=True)
class OneRuntime:
    """An interpreter and what is worth importing before."""

    path: str
    imports: tuple[str, ...]

    def refuse(self, image: str) -> str | None:
        return None

    def readiness(self, need: RuntimeNeed, job: str = "") -> Readiness:
        return READY

    def python(self, need: RuntimeNeed, job: str = "") -> str:
        return self.path

    def warm_imports(self, image: str) -> tuple[str, ...]:
        return self.imports

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return ()

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Nothing ever changes."""


async def run_both(
    programs: Sequence[Program], folder: Path, runtime: OneRuntime, keeper: Keeper
) -> dict[str, Both]:
    """One way after the other, in the same folder, so that paths are the same too."""
    place, kept = folder / "h", {}
    outcomes: list[dict[str, Outcome]] = []
    for warm in (False, True):
        interpreters = Interpreters(python=runtime.path, runtimes=runtime, warm=[IMAGE] if warm else [])
        backend = ProcessBackend(
            place,
            storage=RunStorage(files=FolderRunFiles(place)),
            keeper=keeper,
            interpreters=interpreters,
        )
        await backend.start()
        if warm:
            await until(lambda b=backend: [k.state for k in b.warmth()] not in ([], [WarmState.HEATING]))
            [interpreter] = backend.warmth()
            assert interpreter.state is WarmState.WARM, interpreter.reason
        found: dict[str, Outcome] = {}
        for program in programs:
            before = _uses(backend)
            found[program.what] = await launch_and_wait(backend, program, place)
            kept[program.what] = _uses(backend) > before
        outcomes.append(found)
        await backend.close()
        place.rename(folder / f"was{warm}")
    fresh, warmed = outcomes
    return {what: Both(fresh[what], warmed[what], kept[what]) for what in fresh}


def _uses(backend: ProcessBackend) -> int:
    return sum(interpreter.uses for interpreter in backend.warmth())


async def launch_and_wait(backend: ProcessBackend, program: Program, place: Path) -> Outcome:
    job = "job" + hashlib.sha256(program.what.encode()).hexdigest()[:12]
    key = RunKey(ReplicaName(job, 1, 0, 0), 0)
    replica = place / "jobs" / job / "1" / "0-0"
    output = FolderRunFiles(place).output(key.name)
    out, err = Path(output.stdout), Path(output.stderr)
    for name, text in program.files.items():
        path = replica / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="latin-1" if "latin-1" in text else "utf-8")
    await backend.launch(
        Launch(
            key=key,
            image=IMAGE,
            command=("python", *program.words),
            args=(),
            env=dict(program.env),
            placement=Placement(pool=0, index=0, node="n", host="127.0.0.1", cpus=1, memory=4 << 30),
        )
    )
    if program.signal:
        await until(lambda: "ready" in out.read_text())
        await asyncio.sleep(0.05)  # past the print, into the sleep
        target = parse((replica / "0" / "record").read_bytes()).program
        assert target is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(target.pid, program.signal)
    pause = pauses()
    while True:
        [seen] = await backend.observe(job)
        if not seen.alive:
            break
        await asyncio.sleep(next(pause))
    return Outcome(seen.exit, out.read_text(errors="replace"), err.read_text(errors="replace"))
