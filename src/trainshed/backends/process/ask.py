"""Reads Python stacks by asking: at a signal the program itself appends them to its run's file `stacks`.

stacks.py calls it on machines where no process may look into another (machine/spy.py). Only a program that
has offered itself is sent the signal (customize/sitecustomize.py). That is seen from outside: it catches the
signal and has the file open. Any other program would die of the signal.
"""

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trainshed.backends.machine.proc import slurp
from trainshed.backends.machine.processes import Process, send
from trainshed.backends.process.keeper import StartRequest
from trainshed.backends.process.render import OFFERS
from trainshed.core.jobs.stacks import MOST_FRAMES, MOST_THREADS, StackFrame, ThreadStack
from trainshed.disk.regular_file import open_regular

SIGNAL = 45  # as in customize/sitecustomize.py; a test holds them equal
CUSTOMIZE = Path(__file__).parent / "customize"
FILE = "stacks"

_HEAD = re.compile(
    r"(?:Current thread|Thread) 0x[0-9a-f]+(?: \[(?P<name>[^\]]*)\])? \(most recent call first\):"
)
_FRAME = re.compile(r'  File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.*)')
_PAUSE = 0.01
_MOST = 4 << 20


def offering(request: StartRequest) -> StartRequest:
    """The request of a fresh start, changed so that a watched program offers its stacks."""
    if OFFERS not in request.env:
        return request
    given = request.env.get("PYTHONPATH", "")
    return replace(
        request, env={**request.env, "PYTHONPATH": f"{CUSTOMIZE}:{given}" if given else str(CUSTOMIZE)}
    )


def offers(process: Process, file: Path, proc: str = "/proc") -> bool:
    """Whether the process would answer: it catches the signal, and holds the file open."""
    status = slurp(f"{proc}/{process.pid}/status")
    caught = next((line[7:] for line in status.splitlines() if line.startswith(b"SigCgt:")), b"0")
    if not int(caught, 16) >> (SIGNAL - 1) & 1:
        return False
    folder, wanted = f"{proc}/{process.pid}/fd", str(file)
    try:
        return any(_links(f"{folder}/{number}") == wanted for number in os.listdir(folder))  # noqa: PTH208
    except OSError:
        return False


def _links(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - thousands of them
    except OSError:
        return ""


def ask(process: Process, run: Path, patience: float) -> tuple[tuple[ThreadStack, ...], str]:
    """The threads of a program that offers to tell, or none and why."""
    file = run.resolve() / FILE
    if not offers(process, file):
        return (
            (),
            f"Process {process.pid} cannot be looked into on this machine, and does not offer its stacks.",
        )
    try:
        text = _answer(file, patience, lambda: send(process, SIGNAL))
    except OSError as error:
        return (), f"The stacks of process {process.pid} cannot be read: {error.strerror}."
    threads = read_threads(text)
    return threads, "" if threads else f"Process {process.pid} did not tell its stacks within {patience:g} s."


def _answer(file: Path, patience: float, ask_now: Callable[[], object]) -> str:
    """What is in the file, emptied before the question, once it has stopped growing."""
    handle = open_regular(file, os.O_RDWR | os.O_TRUNC)
    try:
        ask_now()
        deadline, size = time.monotonic() + patience, 0
        while time.monotonic() < deadline:
            time.sleep(_PAUSE)
            now = os.fstat(handle).st_size
            if now and now == size:
                break
            size = now
        return os.pread(handle, _MOST, 0).decode(errors="replace")
    finally:
        os.close(handle)


def read_threads(text: str) -> tuple[ThreadStack, ...]:
    """What faulthandler prints, the main thread first: it is the oldest, and those come last."""
    threads: list[ThreadStack] = []
    name, frames = "", list[StackFrame]()
    for line in [*text.splitlines(), ""]:
        if head := _HEAD.match(line):
            name, frames = head["name"] or "", []
        elif frame := _FRAME.match(line):
            frames.append(StackFrame(frame["name"], frame["file"], int(frame["line"])))
        elif not line and frames:
            threads.append(ThreadStack(name=name, frames=tuple(frames[:MOST_FRAMES])))
            frames = []
    if frames:
        threads.append(ThreadStack(name=name, frames=tuple(frames[:MOST_FRAMES])))
    if not threads:
        return ()
    main = ThreadStack(name=threads[-1].name or "MainThread", frames=threads[-1].frames, is_main=True)
    return (main, *threads[:-1][: MOST_THREADS - 1])
