"""Keeps kilns burning and hands orders to them: the server's side of warm starts.

A kiln is lit when its runtime is first seen ready, again with back-off when it dies, anew after many uses or
when its runtime has changed. It may assume one event loop in a thread that outlives it: a kiln dies with the
thread that started it. It never makes a launch wait for long: a kiln that is not warm, not safe or not quick
means a fresh start, and a reason to show.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainshed.backends.machine.processes import Identity
from trainshed.backends.process.keeper import CompiledKeeper, Keeper, KeeperOrder
from trainshed.backends.process.render import ProcessFrame, runtime_frame, shared_env
from trainshed.backends.process.warm.fitness import WarmImports, unfit
from trainshed.backends.process.warm.process import WarmProcess
from trainshed.core.errors import Unavailable
from trainshed.core.runtime import RuntimeNeed, WarmInterpreter, WarmState
from trainshed.core.runtime_port import Runtimes

_USES = 1000  # then it is lit anew: what a library leaks at each fork does not add up for ever
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0  # seconds until one that ended is lit again
_FIRST_LOOK, _LONGEST_LOOK = 0.1, 10.0  # ... and between looks for runtimes that are not built yet


@dataclass(slots=True)
class _PoolEntry:
    name: str
    imports: tuple[str, ...]
    env: Mapping[str, str]
    fire: WarmProcess | None = None
    pause: float = _FIRST_PAUSE
    reason: str = ""
    relight: asyncio.TimerHandle | None = None


class WarmPool:
    """Keeps some interpreters warm: those of images' runtimes, each from when it is first seen to be ready,
    and others by path, as PYTHON=MODULE,...
    """

    def __init__(self, folder: Path, names: Iterable[str], runtimes: Runtimes) -> None:
        self._folder = folder
        self._runtimes = runtimes
        self._awaited = list(dict.fromkeys(names))  # those still to be lit
        self._kilns: dict[str, _PoolEntry] = {}  # by interpreter
        self._looking: asyncio.TimerHandle | None = None
        self._frame: ProcessFrame | None = None  # None: not open
        self._keeper, self._hosts = "", -1

    def open(self, frame: ProcessFrame, keeper: Keeper, hosts: int = -1) -> None:
        """Light what is ready. Only the compiled keeper can adopt a program: without it all stay cold.

        `hosts` are the mounts that programs begin in (google_hosts.py): a fork cannot leave its kiln's.
        """
        if isinstance(keeper, CompiledKeeper):
            self._frame, self._keeper, self._hosts = frame, keeper.path, hosts
            self._look(_FIRST_LOOK)

    async def spawn(self, order: KeeperOrder, runtime: str) -> Identity | str:
        """The keeper of the order's program, just forked; or why it has to be started afresh.

        `runtime` is the interpreter of its runtime, be it that of the program or not. Nothing where neither
        is kept warm.
        """
        python = order.argv[0] if order.argv[0] in self._kilns else runtime
        kiln = self._kilns.get(python)
        if kiln is None:
            return ""
        if order.hosts != self._hosts:
            return "it means Google's own hosts"
        if kiln.fire is None:
            return kiln.reason
        fire = kiln.fire
        if fire.state is WarmState.UNSAFE and fire.is_stale():
            return self._anew(python, kiln)
        if fire.state is not WarmState.WARM:
            return fire.reason
        if reason := unfit(order, WarmImports(python=python, env=kiln.env, asked=fire.asked)):
            return reason
        if fire.is_stale():
            return self._anew(python, kiln)
        answer = await fire.fork(order)
        if isinstance(answer, Identity):
            kiln.pause = _FIRST_PAUSE
        if fire.uses >= _USES and kiln.fire is fire:
            self._put_out(kiln)
            self._light(python, kiln)
        return answer

    def _anew(self, python: str, kiln: _PoolEntry) -> str:
        self._put_out(kiln)
        self._light(python, kiln)
        return "its runtime has changed since the warm interpreter was started"

    def show(self) -> tuple[WarmInterpreter, ...]:
        return tuple(_show(python, kiln) for python, kiln in self._kilns.items())

    async def close(self) -> None:
        """Put all out. What was forked goes on."""
        self._frame = None
        if self._looking is not None:
            self._looking.cancel()
        fires = [kiln.fire for kiln in self._kilns.values() if kiln.fire is not None]
        for kiln in self._kilns.values():
            self._put_out(kiln)
        for fire in fires:
            await fire.gone.wait()

    def _look(self, pause: float) -> None:
        """Light the kilns of runtimes that have become ready."""
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
            if python not in self._kilns:
                self._kilns[python] = kiln = _PoolEntry(name, imports, shared_env(frame))
                self._light(python, kiln)
        if self._awaited and self._looking is None:  # lighting one that is gone looks again by itself
            again = min(pause * 2, _LONGEST_LOOK)
            self._looking = asyncio.get_running_loop().call_later(pause, self._look, again)

    def _light(self, python: str, kiln: _PoolEntry) -> None:
        kiln.relight = None
        log = self._folder / f"{hashlib.sha256(os.fsencode(python)).hexdigest()[:12]}.log"
        ended: Callable[[WarmProcess], None] = lambda fire: self._ended(python, kiln, fire)  # noqa: E731
        try:
            kiln.fire = WarmProcess(python, kiln.imports, kiln.env, self._keeper, log, ended, self._hosts)
        except FileNotFoundError:  # somebody has removed the runtime: it may be built again
            self._miss(python, kiln)
        except OSError as error:
            kiln.fire, kiln.reason = None, f"the warm interpreter cannot be started: {error}"
            self._later(python, kiln)

    def _miss(self, python: str, kiln: _PoolEntry) -> None:
        loop = asyncio.get_running_loop()
        if "=" in kiln.name:  # nobody else would tell that it is not there
            kiln.fire, kiln.reason = None, f"there is no {python}"
            kiln.relight = loop.call_later(_LONGEST_LOOK, self._light, python, kiln)
            return
        del self._kilns[python]
        self._awaited.append(kiln.name)
        if self._looking is None:
            self._looking = loop.call_later(_LONGEST_LOOK, self._look, _LONGEST_LOOK)

    def _ended(self, python: str, kiln: _PoolEntry, fire: WarmProcess) -> None:
        if kiln.fire is not fire or fire.state is WarmState.UNSAFE:
            return
        kiln.fire, kiln.reason = None, fire.reason
        self._later(python, kiln)

    def _later(self, python: str, kiln: _PoolEntry) -> None:
        if self._frame is None:
            return
        kiln.relight = asyncio.get_running_loop().call_later(kiln.pause, self._light, python, kiln)
        kiln.pause = min(kiln.pause * 2, _LONGEST_PAUSE)

    def _put_out(self, kiln: _PoolEntry) -> None:
        if kiln.relight is not None:
            kiln.relight.cancel()
            kiln.relight = None
        if kiln.fire is not None:
            kiln.fire.put_out()
            kiln.fire = None


def _show(python: str, kiln: _PoolEntry) -> WarmInterpreter:
    fire = kiln.fire
    return WarmInterpreter(
        python=python,
        imports=kiln.imports,
        state=fire.state if fire else WarmState.COLD,
        reason=fire.reason if fire else kiln.reason,
        uses=fire.uses if fire else 0,
        memory=fire.memory() if fire else 0,
        pid=fire.pid if fire else 0,
    )
