"""The process of one warm interpreter, as the server sees it: its socket, its state and its forks.

The pool makes one for each interpreter, in an event loop. Server and interpreter share nothing but a socket
pair, which is no file and needs no permissions. The interpreter ends when the server's end closes. It never
decides whether a request fits (fitness.py) nor what follows an end (pool.py).
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
from trainshed.backends.process.keeper import StartRequest
from trainshed.backends.process.render import OFFERS
from trainshed.core.supplies.runtime import WarmState

_log = logging.getLogger(__name__)
_INTERPRETER = Path(__file__).with_name("interpreter.py")
_CUSTOMIZE = str(CUSTOMIZE / "sitecustomize.py")
_CONTROL = 3  # as in interpreter.py
_PATIENCE = 2.0  # seconds without any answer: after that the program is started afresh
_MOST = 1 << 16
_LONGEST = 1 << 17  # bytes of a request, as in interpreter.py: more would be cut off
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}

# The outermost frame of a warm interpreter, and of a program that is a module. Its globals at the start are
# those of a fresh __main__. Its own folder is taken off sys.path.
_START = """
fresh = dict(globals())
import sys
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]
warm = {"__name__": "trainshed_warm", "modules": frozenset(sys.modules)}
with open(sys.argv[1], "rb") as file:
    exec(compile(file.read(), sys.argv[1], "exec"), warm)
with warm["main"](fresh) as run:
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
    ) -> None:
        """Start it. OSError where the system refuses."""
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
            words = [python, "-c", _START, str(_INTERPRETER), str(os.getpid()), keeper, *imports]
            self.pid = _spawn(words, env, theirs.fileno(), log)
        except OSError:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._control.setblocking(False)
        asyncio.get_running_loop().add_reader(self._control, self._receive)
        self._watch.child(self.pid, self._gone)

    async def fork(self, request: StartRequest) -> Identity | str:
        """The process that becomes the keeper of the requested program; or why there is none."""
        message = _message(request)
        if len(message) > _LONGEST:  # what is not ASCII grows on its way
            return "its arguments and variables are too long to be handed over"
        mine, theirs = socket.socketpair()
        with mine:
            mine.setblocking(False)
            try:
                with theirs:
                    socket.send_fds(self._control, [message], [theirs.fileno()])
                answer = await self._answer(mine)
            except TimeoutError:
                # What it forked meanwhile competes for the run, and may claim it first.
                self.stop()
                return f"the warm interpreter did not answer within {_PATIENCE:g} s"
            except OSError as error:
                return f"the warm interpreter cannot be reached: {error.strerror}"
        self.uses += 1
        match answer.split():
            case [pid, start] if pid.isdigit() and start.isdigit():
                return Identity(int(pid), int(start))
            case [b"no", *_]:
                return answer[3:].decode(errors="replace")
            case _:
                return "the warm interpreter ended"

    async def _answer(self, answers: socket.socket) -> bytes:
        """The answer in time. Each answer gives the others more time: the interpreter is then only busy."""
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
        """Whether a folder its modules come from has changed."""
        return _marks(self._folders) != self._marks

    def memory(self) -> int:
        fields = [] if self.gone.is_set() else slurp(f"/proc/{self.pid}/statm").split()
        return int(fields[1]) * PAGE if len(fields) > 1 else 0

    def stop(self) -> None:
        self._close_control()
        if not self.gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # a child that is not reaped: the pid is still its own

    def _receive(self) -> None:
        """Read its one message, or that it has closed the socket."""
        try:
            message = self._control.recv(_MOST)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._close_control()
            return
        report: dict[str, Any] = json.loads(message)
        self._folders = tuple(report["folders"])
        self._marks = tuple((node, changed) for node, changed in report["folders"].values())
        if "unsafe" in report:
            self.state, self.reason = WarmState.UNSAFE, str(report["unsafe"])
            _log.warning("%s is not kept warm: %s", self._python, self.reason)
            return
        self.asked = frozenset(report["asked"])
        self.state, self.reason = WarmState.WARM, ""

    def _gone(self) -> None:
        if self._control.fileno() >= 0:
            self._receive()  # the end may be seen before its last message
        self._close_control()
        if self.state is not WarmState.UNSAFE:
            last = _last_line(self._log) if self.state is WarmState.HEATING else ""
            self.state = WarmState.COLD
            self.reason = f"the warm interpreter ended{': ' + last if last else ''}"
        self.gone.set()
        self._ended(self)

    def _close_control(self) -> None:
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()


def _spawn(words: Sequence[str], env: Mapping[str, str], control: int, log: Path) -> int:
    output = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    return os.posix_spawn(
        words[0],
        list(words),
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, control, _CONTROL),
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(log), output, 0o600),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_SIGNALS,
    )


def _message(request: StartRequest) -> bytes:
    plain = {
        "argv": list(request.argv),
        "env": dict(request.env),
        "run": request.run,
        "work": request.work,
        "group": request.groups.own or "",
        "join": list(request.groups.joined),
        "stdout": request.stdout,
        "stderr": request.stderr,
        "hosts": request.hosts,
        "view": request.view,
        "lazy": request.lazy,
        "user": request.user.plain if request.user is not None else None,
        "customize": _CUSTOMIZE if OFFERS in request.env else "",
    }
    return json.dumps(plain).encode()


async def _read(answers: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    result = b""
    while part := await loop.sock_recv(answers, 4096):
        result += part
    return result


def _marks(folders: Sequence[str]) -> tuple[tuple[int, int], ...]:
    marks: list[tuple[int, int]] = []
    for folder in folders:
        try:
            seen = os.stat(folder)  # noqa: PTH116 - for each start
        except OSError:
            marks.append((0, 0))
        else:
            marks.append((seen.st_ino, seen.st_mtime_ns))
    return tuple(marks)


def _last_line(log: Path) -> str:
    lines = slurp(str(log)).decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""
