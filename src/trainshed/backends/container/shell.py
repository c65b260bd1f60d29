"""Shells in containers: programs that the engine starts beside the run's own program.

`service/shells.py` calls it. Shells end with their container. When a user disconnects, the engine lets the
program run on; so each has a mark in its environment, by which it is found and killed. Where this server may
not kill it, `kill` runs inside the container. The mark names the home, so a server finds what a killed one
left. Output waits at the engine until somebody reads it.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Sequence
from typing import Any

from trainshed.backends.container.engine import Engine, TerminalConnection
from trainshed.backends.container.engine_errors import (
    EngineFault,
    FaultKind,
    is_exec_refusal,
    says_no_such_program,
)
from trainshed.backends.container.run import ContainerRun, ContainerRuns
from trainshed.core.errors import NotFound, Unavailable
from trainshed.core.names import RunKey
from trainshed.core.shell_port import Screen

MARK = "TRAINSHED_SHELL"
_SHELLS = (
    ("sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"),
    ("bash",),
)
_NO_SHELL = (
    b"trainshed: this image has no shell, neither bash nor sh; a program that is in it can be run:\r\n"
    b"  trainshed shell JOB -- PROGRAM\r\n"
)
_FORBIDDEN, _MISSING = _NOT_STARTED = (126, 127)
_KILLED = 128 + signal.SIGKILL
_HANGING_UP = 0.3  # seconds for a program to end by itself after SIGHUP
_END_OF_INPUT = b"\x04"
_HEAD = 8  # bytes before each piece without a terminal: the stream and the length


class ContainerTerminal:
    """Implements `core.shell_port.Terminal`, over the engine's connection to a program."""

    def __init__(
        self, engine: Engine, run: ContainerRun, identity: str, mark: str, line: TerminalConnection
    ) -> None:
        self._engine, self._run, self._id, self._mark, self._line = engine, run, identity, mark, line
        self.screen: Screen | None = None
        self._rest = bytearray()
        self._first = b""
        self._is_missing = False  # the engine says that there is no such program
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    async def read(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        piece = await self._next()
        self._is_missing |= says_no_such_program(piece)
        return piece

    async def _next(self) -> bytes:
        if self.screen is not None:
            return b"" if self._closed else await self._line.read()
        while not self._closed:
            if (piece := self._unwrapped()) is not None:
                return piece
            if not (came := await self._line.read()):
                break
            self._rest += came
        return b""

    async def write(self, data: bytes) -> None:
        if not self._closed:
            await self._line.write(data)

    async def finish(self) -> None:
        if self.screen is not None:
            await self.write(_END_OF_INPUT)
        elif not self._closed:
            self._line.finish()

    async def resize(self, screen: Screen) -> None:
        # An engine refuses while the program is starting, and after it has ended.
        for pause in (0.0, 0.02, 0.1):
            await asyncio.sleep(pause)
            with contextlib.suppress(EngineFault, Unavailable):
                size = {"h": screen.rows, "w": screen.columns}
                await self._engine.ask("POST", f"/exec/{self._id}/resize", size)
                return

    async def wait(self) -> int:
        pause = 0.005
        while (state := await self.look()) is not None:
            if not state.get("Running"):
                code = state.get("ExitCode")
                if code == _FORBIDDEN and self._is_missing:  # Docker returns 126 for this too
                    return _MISSING
                return code if isinstance(code, int) and code >= 0 else _KILLED
            if self._run.gone.is_set():
                return _KILLED
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.2)
        return _KILLED

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._line.close()
        state = await self.look()
        if state is None or not state.get("Running"):
            await self._kill([])
            return
        pid = int(state.get("Pid") or 0)
        _hang_up(pid)
        await asyncio.sleep(_HANGING_UP)
        await self._kill([pid])
        if not self._run.gone.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.wait(), 10)

    async def look(self) -> dict[str, Any] | None:
        """None where the engine has forgotten it, as it does with its container, or does not answer."""
        try:
            return await self._engine.ask("GET", f"/exec/{self._id}/json")
        except (EngineFault, Unavailable):
            return None

    async def refused(self) -> bool:
        """Whether it was not started. Then the engine's message is what `read` returns."""
        state = await self.look()
        if state is None or state.get("Running") or state.get("ExitCode") not in _NOT_STARTED:
            return False
        words = b""
        while piece := await self.read():
            words += piece
        self._first = words
        return is_exec_refusal(words)

    def explain(self) -> None:
        self._first = _NO_SHELL

    def _unwrapped(self) -> bytes | None:
        """The next piece of either stream; None where it is not complete."""
        if len(self._rest) < _HEAD:
            return None
        size = int.from_bytes(self._rest[4:_HEAD], "big")
        if not size:
            del self._rest[:_HEAD]
            return self._unwrapped()
        if len(self._rest) < _HEAD + size:
            return None
        piece = bytes(self._rest[_HEAD : _HEAD + size])
        del self._rest[: _HEAD + size]
        return piece

    async def _kill(self, pids: list[int]) -> None:
        """Kill all processes with the mark, and these."""
        marked = {*await asyncio.to_thread(_marked, self._mark), *pids} - {0}
        kept = [pid for pid in marked if not _killed(pid)]
        inside = [number for number in map(_inside, kept) if number]
        if inside:
            with contextlib.suppress(EngineFault, Unavailable):
                made = await _made(self._engine, self._run.container, ("kill", "-9", *inside), None, "")
                (await self._engine.hijack(f"/exec/{made}/start", {"Detach": False, "Tty": False})).close()


class ContainerShells:
    def __init__(self, runs: ContainerRuns, engine: Engine) -> None:
        self._runs, self._engine = runs, engine
        self._home = ""
        self._open: set[ContainerTerminal] = set()

    async def begin(self, home: str) -> None:
        """End shells that an earlier server of this home left."""
        self._home = f"{home}."
        for pid in await asyncio.to_thread(_marked, self._home):
            _killed(pid)

    async def open_shell(
        self, key: RunKey, command: Sequence[str], screen: Screen | None
    ) -> ContainerTerminal:
        run = self._runs.get(key.name.job, {}).get(key)
        if run is None or not run.alive:
            raise NotFound("The replica does not run: no shell can be opened in it.")
        self._open = {item for item in self._open if not item.is_closed}
        terminal = await self._begin(run, command or _SHELLS[0], screen)
        if not command and await terminal.refused():
            terminal = await self._begin(run, _SHELLS[1], screen)
            if await terminal.refused():
                terminal.explain()
        return terminal

    async def close(self) -> None:
        await asyncio.gather(*(item.close() for item in self._open))

    async def _begin(
        self, run: ContainerRun, command: Sequence[str], screen: Screen | None
    ) -> ContainerTerminal:
        mark = f"{self._home}{secrets.token_hex(8)}"
        try:
            made = await _made(self._engine, run.container, command, screen, mark)
            start = {"Detach": False, "Tty": screen is not None}
            line = await self._engine.hijack(f"/exec/{made}/start", start)
        except EngineFault as error:
            if run.gone.is_set() or error.kind in (FaultKind.MISSING, FaultKind.NOT_RUNNING):
                raise NotFound("The replica does not run: no shell can be opened in it.") from error
            raise Unavailable(f"No shell could be started: {error.message}") from error
        terminal = ContainerTerminal(self._engine, run, made, mark, line)
        terminal.screen = screen
        self._open.add(terminal)
        if screen is not None:
            await terminal.resize(screen)
        return terminal


async def _made(
    engine: Engine, container: str, command: Sequence[str], screen: Screen | None, mark: str
) -> str:
    body = exec_body(command, screen, mark)
    return str((await engine.ask("POST", f"/containers/{container}/exec", None, body))["Id"])


def exec_body(command: Sequence[str], screen: Screen | None, mark: str) -> dict[str, object]:
    """The exec request: the run's own user and folder, and no more rights."""
    env = [f"{MARK}={mark}"] if mark else []
    return {
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": screen is not None,
        "Privileged": False,
        "Cmd": list(command),
        "Env": [*env, "TERM=xterm-256color"] if screen is not None else env,
    }


def _marked(mark: str) -> set[int]:
    """Processes whose mark begins with this; those of other users are not visible."""
    wanted, result = f"\0{MARK}={mark}".encode(), set[int]()
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                if wanted in b"\0" + file.read():
                    result.add(int(name))
    return result


def _hang_up(pid: int) -> None:
    with contextlib.suppress(OSError):
        if pid:
            os.kill(pid, signal.SIGHUP)


def _killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _inside(pid: int) -> str:
    """Its pid inside the container."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("NSpid:"):
                return line.split()[-1]
    return ""
