"""One kiln that burns: its process, the socket to it, and what it has said.

It may assume an event loop. The kiln shares nothing with the server but one end of a socket pair, which is
no file and needs no permissions: whoever holds the other end is the server, and when nobody does the kiln
ends. It never decides whether an order fits (fitness.py) nor what follows an end (pool.py).
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainshed.backends.machine.proc import PAGE, slurp
from trainshed.backends.machine.processes import Identity
from trainshed.backends.machine.watch import ProcessEndWatch
from trainshed.backends.process.ask import CUSTOMIZE
from trainshed.backends.process.keeper import KeeperOrder
from trainshed.backends.process.render import OFFERS
from trainshed.core.runtime import WarmState

_log = logging.getLogger(__name__)
_KILN = Path(__file__).with_name("interpreter.py")
_CUSTOMIZE = str(CUSTOMIZE / "sitecustomize.py")
_CONTROL = 3  # as in interpreter.py
_HOSTS = 4
_PATIENCE = 2.0  # seconds without any answer: a kiln silent for longer is overtaken by fresh starts
_MOST = 1 << 16
_LONGEST = 1 << 17  # bytes of an order, as in interpreter.py: more would be cut off
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}

# The outermost frame of a kiln, and of a program that is a module. Its globals, as found, are those of a
# fresh __main__; its own folder is not to be found among the modules.
_START = """
fresh = dict(globals())
import sys
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]
kiln = {"__name__": "trainshed_kiln", "modules": frozenset(sys.modules)}
with open(sys.argv[1], "rb") as file:
    exec(compile(file.read(), sys.argv[1], "exec"), kiln)
with kiln["main"](fresh) as run:
    run()
"""


class WarmProcess:
    def __init__(
        self,
        python: str,
        imports: Sequence[str],
        env: Mapping[str, str],
        keeper: str,
        log: Path,
        ended: Callable[["WarmProcess"], None],
        hosts: int = -1,
    ) -> None:
        """Light it, in the mounts open as `hosts`. OSError where the system refuses."""
        self.state, self.reason = WarmState.HEATING, "the warm interpreter is still importing"
        self.asked: frozenset[str] = frozenset()
        self.uses = 0
        self.gone = asyncio.Event()
        self._python, self._log, self._ended = python, log, ended
        self._folders: tuple[str, ...] = ()
        self._marks: tuple[tuple[int, int], ...] = ()
        self._limits: set[asyncio.Timeout] = set()  # of those who wait for an answer
        self._watch = ProcessEndWatch()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            words = [python, "-c", _START, str(_KILN), str(os.getpid()), keeper, *imports]
            if hosts >= 0:
                os.stat(python)  # noqa: PTH116 - that it is missing is told before it is run
                words = [keeper, "--in-hosts", str(_HOSTS), *words]
            self.pid = _spawn(words, env, theirs.fileno(), log, hosts)
        except OSError:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._control.setblocking(False)
        asyncio.get_running_loop().add_reader(self._control, self._hear)
        self._watch.child(self.pid, self._gone)

    async def fork(self, order: KeeperOrder) -> Identity | str:
        """The keeper-to-be of the order's program; or why there is none."""
        message = _message(order)
        if len(message) > _LONGEST:  # what is not ASCII grows on its way
            return "its arguments and variables are too long to be handed over"
        mine, theirs = socket.socketpair()
        with mine:
            mine.setblocking(False)
            try:
                with theirs:
                    socket.send_fds(self._control, [message], [theirs.fileno()])
                said = await self._answer(mine)
            except TimeoutError:
                # Whatever holds it up. What it forked meanwhile competes for the run, and may win it.
                self.put_out()
                return f"the warm interpreter did not answer within {_PATIENCE:g} s"
            except OSError as error:
                return f"the warm interpreter cannot be reached: {error.strerror}"
        self.uses += 1
        match said.split():
            case [pid, start] if pid.isdigit() and start.isdigit():
                return Identity(int(pid), int(start))
            case [b"no", *_]:
                return said[3:].decode(errors="replace")
            case _:
                return "the warm interpreter ended"

    async def _answer(self, answers: socket.socket) -> bytes:
        """As long as others are answered it is only busy: so many fresh starts would make it busier."""
        async with asyncio.timeout(_PATIENCE) as limit:
            self._limits.add(limit)
            try:
                result = await _read(answers)
            finally:
                self._limits.discard(limit)
        later = asyncio.get_running_loop().time() + _PATIENCE
        for other in self._limits:
            if not other.expired():
                other.reschedule(later)
        return result

    def is_stale(self) -> bool:
        """Whether a folder its modules come from is not what it was."""
        return _marks(self._folders) != self._marks

    def memory(self) -> int:
        fields = [] if self.gone.is_set() else slurp(f"/proc/{self.pid}/statm").split()
        return int(fields[1]) * PAGE if len(fields) > 1 else 0

    def put_out(self) -> None:
        self._deafen()
        if not self.gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # a child that is not reaped: the pid is still its own

    def _hear(self) -> None:
        """Its one message, or the end of the line."""
        try:
            said = self._control.recv(_MOST)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self._deafen()
            return
        told: dict[str, Any] = json.loads(said)
        self._folders = tuple(told["folders"])
        self._marks = tuple((node, changed) for node, changed in told["folders"].values())
        if "unsafe" in told:
            self.state, self.reason = WarmState.UNSAFE, str(told["unsafe"])
            _log.warning("%s is not kept warm: %s", self._python, self.reason)
            return
        self.asked = frozenset(told["asked"])
        self.state, self.reason = WarmState.WARM, ""

    def _gone(self) -> None:
        if self._control.fileno() >= 0:
            self._hear()  # its last word, where the end was seen first
        self._deafen()
        if self.state is not WarmState.UNSAFE:
            last = _last_line(self._log) if self.state is WarmState.HEATING else ""
            self.state = WarmState.COLD
            self.reason = f"the warm interpreter ended{': ' + last if last else ''}"
        self.gone.set()
        self._ended(self)

    def _deafen(self) -> None:
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()


def _spawn(words: Sequence[str], env: Mapping[str, str], control: int, log: Path, hosts: int) -> int:
    output = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    return os.posix_spawn(
        words[0],
        list(words),
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, control, _CONTROL),
            *([(os.POSIX_SPAWN_DUP2, hosts, _HOSTS)] if hosts >= 0 else []),
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(log), output, 0o600),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_SIGNALS,
    )


def _message(order: KeeperOrder) -> bytes:
    plain = {
        "argv": list(order.argv),
        "env": dict(order.env),
        "run": order.run,
        "work": order.work,
        "group": order.group or "",
        "memory": order.memory or "",
        "stdout": order.stdout,
        "stderr": order.stderr,
        "view": order.view,
        "customize": _CUSTOMIZE if OFFERS in order.env else "",
    }
    return json.dumps(plain).encode()


async def _read(answers: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    result = b""
    while part := await loop.sock_recv(answers, 4096):
        result += part
    return result


def _marks(folders: Sequence[str]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for folder in folders:
        try:
            seen = os.stat(folder)  # noqa: PTH116 - for each start
        except OSError:
            found.append((0, 0))
        else:
            found.append((seen.st_ino, seen.st_mtime_ns))
    return tuple(found)


def _last_line(log: Path) -> str:
    lines = slurp(str(log)).decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""
