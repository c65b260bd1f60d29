"""Keeps warm interpreters running and hands start requests to them: the server's side of warm starts.

The backend's starter calls it. The pool starts an interpreter when its runtime is first ready, again with
back-off when it dies, and anew after many uses or when its runtime has changed. It needs one event loop in a
thread that outlives it: a warm interpreter dies with the thread that started it. It never makes a launch wait
for long: where an interpreter is not warm, not safe or not quick it answers with a reason, and the launch
starts afresh.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from trainshed.backends.machine.processes import Identity
from trainshed.backends.process.keeper import CompiledKeeper, Keeper, StartRequest
from trainshed.backends.process.render import ProcessFrame, runtime_frame, shared_env
from trainshed.backends.process.warm.fitness import WarmImports, unfit
from trainshed.backends.process.warm.process import WarmProcess
from trainshed.core.errors import Unavailable
from trainshed.core.supplies.runtime import RuntimeNeed, WarmInterpreter, WarmState
from trainshed.core.supplies.runtime_port import Runtimes

_NOTHING: Mapping[str, str] = MappingProxyType({})
_USES = 1000  # then it is started anew: what a library leaks at each fork does not add up for ever
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0  # seconds until one that ended is started again
_FIRST_LOOK, _LONGEST_LOOK = 0.1, 10.0  # ... and between looks for runtimes that are not built yet


@dataclass(slots=True)
class _PoolEntry:
    name: str
    imports: tuple[str, ...]
    env: Mapping[str, str]
    process: WarmProcess | None = None
    pause: float = _FIRST_PAUSE
    reason: str = ""
    restart: asyncio.TimerHandle | None = None


class WarmPool:
    """Names are images, whose runtimes' interpreters are kept warm, or PYTHON=MODULE,... for others."""

    def __init__(self, folder: Path, names: Iterable[str], runtimes: Runtimes) -> None:
        self._folder = folder
        self._runtimes = runtimes
        self._awaited = list(dict.fromkeys(names))  # names whose runtimes are not ready yet
        self._entries: dict[str, _PoolEntry] = {}  # by interpreter
        self._looking: asyncio.TimerHandle | None = None
        self._frame: ProcessFrame | None = None  # None: not open
        self._keeper, self._env = "", _NOTHING

    def open(self, frame: ProcessFrame, keeper: Keeper, env: Mapping[str, str] = _NOTHING) -> None:
        """Start what is ready. Only the compiled keeper can adopt a program: without it nothing starts.

        `env` has variables that nearly every program gets: imports may read them.
        """
        if isinstance(keeper, CompiledKeeper):
            self._frame, self._keeper, self._env = frame, keeper.path, env
            self._look(_FIRST_LOOK)

    async def spawn(self, request: StartRequest, runtime: str) -> Identity | str:
        """The keeper of the program, just forked; or why the program needs a fresh start.

        `runtime` is the interpreter of the job's runtime, whether the program is run by it or not. The reason
        is empty where neither is kept warm.
        """
        python = request.argv[0] if request.argv[0] in self._entries else runtime
        entry = self._entries.get(python)
        if entry is None:
            return ""
        if entry.process is None:
            return entry.reason
        process = entry.process
        if process.state is WarmState.UNSAFE and process.is_stale():
            return self._start_anew(python, entry)
        if process.state is not WarmState.WARM:
            return process.reason
        if reason := unfit(request, WarmImports(python=python, env=entry.env, asked=process.asked)):
            return reason
        if process.is_stale():
            return self._start_anew(python, entry)
        answer = await process.fork(request)
        if isinstance(answer, Identity):
            entry.pause = _FIRST_PAUSE
        if process.uses >= _USES and entry.process is process:
            self._stop(entry)
            self._start(python, entry)
        return answer

    def _start_anew(self, python: str, entry: _PoolEntry) -> str:
        self._stop(entry)
        self._start(python, entry)
        return "its runtime has changed since the warm interpreter was started"

    def show(self) -> tuple[WarmInterpreter, ...]:
        return tuple(_show(python, entry) for python, entry in self._entries.items())

    async def close(self) -> None:
        """End all warm interpreters. What was forked from them runs on."""
        self._frame = None
        if self._looking is not None:
            self._looking.cancel()
        processes = [entry.process for entry in self._entries.values() if entry.process is not None]
        for entry in self._entries.values():
            self._stop(entry)
        for process in processes:
            await process.gone.wait()

    def _look(self, pause: float) -> None:
        """Start the interpreters of runtimes that have become ready."""
        self._looking = None
        if self._frame is None:
            return
        for name in list(self._awaited):
            python, equals, modules = name.partition("=")
            imports, frame = tuple(modules.split(",")), self._frame
            if not equals:
                try:
                    python = self._runtimes.python(RuntimeNeed(name))
                except Unavailable:
                    continue  # it is not built
                imports = self._runtimes.warm_imports(name)
                frame = frame if python == frame.python else runtime_frame(frame, python)
            self._awaited.remove(name)
            if python not in self._entries:
                self._entries[python] = entry = _PoolEntry(name, imports, {**shared_env(frame), **self._env})
                self._start(python, entry)
        if self._awaited and self._looking is None:  # _await_runtime may have set the timer
            again = min(pause * 2, _LONGEST_LOOK)
            self._looking = asyncio.get_running_loop().call_later(pause, self._look, again)

    def _start(self, python: str, entry: _PoolEntry) -> None:
        entry.restart = None
        log = self._folder / f"{hashlib.sha256(os.fsencode(python)).hexdigest()[:12]}.log"
        ended: Callable[[WarmProcess], None] = lambda process: self._ended(python, entry, process)  # noqa: E731
        try:
            entry.process = WarmProcess(python, entry.imports, entry.env, self._keeper, log, ended)
        except FileNotFoundError:  # the runtime was removed, and may be built again
            self._await_runtime(python, entry)
        except OSError as error:
            entry.process, entry.reason = None, f"the warm interpreter cannot be started: {error}"
            self._start_later(python, entry)

    def _await_runtime(self, python: str, entry: _PoolEntry) -> None:
        loop = asyncio.get_running_loop()
        if "=" in entry.name:  # given by path: no runtime would report that it is missing
            entry.process, entry.reason = None, f"there is no {python}"
            entry.restart = loop.call_later(_LONGEST_LOOK, self._start, python, entry)
            return
        del self._entries[python]
        self._awaited.append(entry.name)
        if self._looking is None:
            self._looking = loop.call_later(_LONGEST_LOOK, self._look, _LONGEST_LOOK)

    def _ended(self, python: str, entry: _PoolEntry, process: WarmProcess) -> None:
        if entry.process is not process or process.state is WarmState.UNSAFE:
            return
        entry.process, entry.reason = None, process.reason
        self._start_later(python, entry)

    def _start_later(self, python: str, entry: _PoolEntry) -> None:
        if self._frame is None:
            return
        entry.restart = asyncio.get_running_loop().call_later(entry.pause, self._start, python, entry)
        entry.pause = min(entry.pause * 2, _LONGEST_PAUSE)

    def _stop(self, entry: _PoolEntry) -> None:
        if entry.restart is not None:
            entry.restart.cancel()
            entry.restart = None
        if entry.process is not None:
            entry.process.stop()
            entry.process = None


def _show(python: str, entry: _PoolEntry) -> WarmInterpreter:
    process = entry.process
    return WarmInterpreter(
        python=python,
        imports=entry.imports,
        state=process.state if process else WarmState.COLD,
        reason=process.reason if process else entry.reason,
        uses=process.uses if process else 0,
        memory=process.memory() if process else 0,
        pid=process.pid if process else 0,
    )
