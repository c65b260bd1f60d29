"""A warm interpreter: idle, with its imports done. Each start request becomes a fork of it.

The runtime's own Python runs it as `python -c START interpreter.py SERVER KEEPER IMPORT...`, with a socket to
the server open as number 3. Only the server holds the other end: when that closes this process ends, and what
it forked runs on. It never forks while it has a thread, a child or a descriptor that two processes must not
share: it reports why, once, and ends.

For a request it forks the keeper-to-be, which forks the program-to-be and then becomes the keeper by exec.
The program waits on a pipe until the keeper has claimed the run, so that every promise of the keeper holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import signal
import socket
import sys
import types
from collections.abc import Sequence
from typing import Any, NoReturn

_OLDEST, _NEWEST = (3, 9), (3, 13)  # Pythons the equivalence suite has been run with
_CONTROL = 3
_PARKED = 200  # the socket's number: what the imports open gets the numbers it always has
_MOST = 1 << 17
_UNSHARED = ("socket:", "pipe:", "anon_inode:", "/dev/nvidia", "/dev/kfd", "/dev/dri")


class Unsafe(Exception):
    """Why this interpreter cannot be forked."""


def main(fresh: dict[str, object]) -> Any:
    """Serve until the server is gone. In a program's process: what to run, or Become raised."""
    file, server, keeper, *imports = sys.argv[1:]
    control = _park()
    program = _load(os.path.join(os.path.dirname(file), "program.py"))
    program.drop_rights = _load(os.path.join(os.path.dirname(file), "..", "rights.py")).drop_rights
    program.die_with(int(server))
    program.listen_to_all()
    asked, env, folders = set[str](), dict(os.environ), _folders()
    try:
        asked = _warm_up(imports)
        _try_out(program, {0, 1, 2, control.fileno()})
    except Unsafe as error:
        control.send(json.dumps({"unsafe": str(error), "folders": _marks(folders)}).encode())
        os.killpg(0, signal.SIGKILL)  # what the imports have started, too
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the server watches keepers: nobody here waits for them
    program.initial_modules = frozenset(globals()["modules"])
    program.env_changes = _changes(env, dict(os.environ))
    control.send(json.dumps({"asked": sorted(asked), "folders": _marks(folders)}).encode())
    while True:
        message, handles, *_ = socket.recv_fds(control, _MOST, 1)
        if not message:
            os._exit(0)
        with socket.socket(fileno=handles[0]) as answer:
            if reason := _threads():
                answer.send(b"no " + reason.encode())
                os._exit(0)
            try:
                child = os.fork()
            except OSError as error:  # no room for a process now
                answer.send(b"no " + str(error).encode())
                continue
            if child == 0:
                return _serve(program, message, (answer, control), keeper, fresh)


def _serve(program: Any, message: bytes, sockets: Sequence[socket.socket], keeper: str, fresh: Any) -> Any:
    """In the fork: fork once more. The parent becomes the keeper, the child the program."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    me = os.getpid()
    try:
        request = json.loads(message)
        _open(request)
        gate, latch = os.pipe()
        asked, trigger = os.pipe() if request["lazy"] else (0, 0)
        child = os.fork()
    except (OSError, ValueError) as error:
        _decline(sockets[0], error)
    if child:
        _keep(request, keeper, (child, latch, asked), sockets[0])
    for end in sockets:
        os.close(end.detach())
    os.close(latch)
    os.setsid()
    program.die_with(me)
    if os.read(gate, 1) != b"+":
        os._exit(127)  # another keeper has the run
    os.close(gate)
    if trigger:
        os.close(asked)
    if request["view"] or request["hosts"]:
        program.make_mounts(request, trigger, me, keeper)
    program.enter(request, me)
    module = program.prepare(request, fresh)
    if module is None:
        raise program.Become
    return module


def _keep(request: Any, keeper: str, child: tuple[int, int, int], answer: socket.socket) -> NoReturn:
    pid, latch, asked = child
    words = [request["run"], request["work"], request["group"] or "-", *request["argv"]]
    try:
        lazy: list[str] = []
        if asked:
            os.set_inheritable(asked, True)
            lazy = ["--lazy", request["view"], str(asked)]
        os.set_inheritable(latch, True)
        with open("/proc/self/stat", "rb") as file:
            start = file.read().rpartition(b")")[2].split()[19]
        answer.send(b"%d %s" % (os.getpid(), start))
        # The answer is whole when the socket closes, which exec does.
        adopt = ["--adopt", str(pid), str(latch)]
        os.execve(keeper, ["trainshed-keeper", *lazy, *adopt, *words], request["env"])
    except (OSError, ValueError) as error:
        _decline(answer, error)


def _decline(answer: socket.socket, error: Exception) -> NoReturn:
    with contextlib.suppress(OSError):
        answer.send(b"no " + str(error).encode())
    os._exit(1)


def _open(request: Any) -> None:
    output = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    for number, path, flags in (
        (0, "/dev/null", os.O_RDONLY),
        (1, request["stdout"], output),
        (2, request["stderr"], output),
    ):
        # Without waiting: a job may have put a FIFO there.
        opened = os.open(path, flags | os.O_NONBLOCK, 0o600)
        os.set_blocking(opened, True)
        if number and request["user"]:  # it may open its output again, as /dev/stdout
            os.fchown(opened, request["user"]["uid"], request["user"]["gid"])
        os.dup2(opened, number)
        os.close(opened)


def _park() -> socket.socket:
    """The socket to the server, moved to a high number. Whatever else the server had open is closed."""
    parked = fcntl.fcntl(_CONTROL, fcntl.F_DUPFD_CLOEXEC, _PARKED)
    for number in _descriptors() - {0, 1, 2, parked}:
        with contextlib.suppress(OSError):  # the one the others were listed by
            os.close(number)
    return socket.socket(fileno=parked)


def _load(path: str) -> Any:
    """A file beside this one, as a module that nobody else can import."""
    module = types.ModuleType("trainshed_program")
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), vars(module))
    return module


def _warm_up(imports: Sequence[str]) -> set[str]:
    """Import; the names of the variables that were asked for meanwhile."""
    if not _OLDEST <= sys.version_info[:2] <= _NEWEST:
        raise Unsafe(
            f"warm starts have not been proven with Python {sys.version_info[0]}.{sys.version_info[1]}"
        )
    asked: set[str] = set()
    kind: Any = type(os.environ)  # its class, as modules may hold the object itself
    get = kind.__getitem__

    def note(self: Any, name: Any) -> Any:
        asked.add(str(name))
        return get(self, name)

    name = ""
    kind.__getitem__ = note
    try:
        for name in imports:
            importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:
        raise Unsafe(f"import {name} fails: {error}") from error
    finally:
        kind.__getitem__ = get
    return asked


def _try_out(program: Any, known: set[int]) -> None:
    """Fork once: a library that is prepared for it, as OpenBLAS, ends its threads. What is left is not."""
    if sys.stdout is not None:
        sys.stdout.flush()
    gc.collect()
    gc.freeze()  # what is there now is never looked at again, so that forks go on sharing its pages
    trial = os.fork()
    if trial == 0:
        os._exit(0 if program.show(["trial"], {}) else 1)
    _, status = os.waitpid(trial, 0)
    if status:
        raise Unsafe(
            "the kernel does not let a process change what it shows as its command line (PR_SET_MM_MAP)"
        )
    if reason := _threads() or _children() or _unshared(known):
        raise Unsafe(reason)


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str | None]:
    """The variables that were set, or, where None, taken away."""
    names = before.keys() | after.keys()
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def _folders() -> dict[str, tuple[tuple[int, int], set[tuple[str, int]]]]:
    """The folders modules come from: the mark by which the server sees a change, and what is in them."""
    result: dict[str, tuple[tuple[int, int], set[tuple[str, int]]]] = {}
    for path in sys.path:
        with contextlib.suppress(OSError):  # an archive, or not there
            seen = os.stat(path)
            with os.scandir(path) as entries:
                names = {(entry.name, entry.inode()) for entry in entries if entry.name != "__pycache__"}
            result[path] = (seen.st_ino, seen.st_mtime_ns), names
    return result


def _marks(before: dict[str, tuple[tuple[int, int], set[tuple[str, int]]]]) -> dict[str, tuple[int, int]]:
    """The marks from before the imports: what changed meanwhile counts as changed, compiled files do not."""
    marks: dict[str, tuple[int, int]] = {}
    for path, (mark, names) in _folders().items():
        old, known = before.get(path, (mark, names))
        marks[path] = mark if names == known else old
    return marks


def _threads() -> str:
    tasks = os.listdir("/proc/self/task")
    if len(tasks) == 1:
        return ""
    names: set[str] = set()
    for task in tasks:
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm") as file:
            names.add(file.read().strip())
    named = ", ".join(sorted(names))
    return f"the imports leave {len(tasks) - 1} threads running ({named}), which a fork would not have"


def _children() -> str:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return ""
    return "the imports leave a process running, which a fork would share"


def _unshared(known: set[int]) -> str:
    """CUDA once initialised holds its devices; sockets and pipes have one reader."""
    cuda = sys.modules.get("torch.cuda")
    if getattr(cuda, "_initialized", False):
        return "the imports initialise CUDA, which does not work in a fork"
    for number in _descriptors() - known:
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")
            if target.startswith(_UNSHARED):
                return f"the imports hold {target} open, which forks must not share"
    return ""


def _descriptors() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/fd")}
