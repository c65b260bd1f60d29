"""Runs a program beside a run: `python -I -S companion.py RUN PID START SERVER KIND [PROGRAM [ARG...]]`.

shell.py starts it. RUN is the run's directory, PID and START identify its program, SERVER is the server's
pid, KIND is `terminal` or `pipes`. The program gets the files open as 0, 1 and 2, and the environment,
working directory, cgroup, mounts and user of the run. Without a PROGRAM it is the best shell there is. The
companion ends when its program ends, when the run's program ends, when the server goes, or at SIGTERM, and
ends everything that descends from it. Its exit status is that of its program. It imports nothing of Trainshed
and never touches the run.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import termios
import time
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_SHELLS = ("bash", "sh")
_KILLED = 128 + signal.SIGKILL
_HANGING_UP = 1.0  # seconds for programs to end by themselves after SIGHUP
_POLL = 0.2  # seconds, on kernels without pidfds


def main(words: list[str]) -> int:
    run, pid, start, server, kind, *program = words
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    wakeup, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signals: list[int] = []
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.append(number))
    watched = _watch(int(pid))
    if os.getppid() != int(server) or _started(int(pid)) != int(start):
        return _KILLED
    child = os.fork()
    if child == 0:
        _become(libc, run, int(pid), kind == "terminal", program)
    _close_terminal()
    code = _hold(child, wakeup, watched, signals, (int(pid), int(start)))
    _sweep()
    return code


def _hold(child: int, wakeup: int, watched: int | None, signals: list[int], of: tuple[int, int]) -> int:
    """The child's exit code; that of a killed one where it has to end."""
    awaited = [wakeup] if watched is None else [wakeup, watched]
    while True:
        ready, _, _ = select.select(awaited, [], [], _POLL if watched is None else None)
        if wakeup in ready:
            os.read(wakeup, 4096)
        while (ended := _reaped())[0] > 0:
            if ended[0] == child:
                status = os.waitstatus_to_exitcode(ended[1])
                return status if status >= 0 else 128 - status
        gone = watched in ready if watched is not None else _started(of[0]) != of[1]
        if gone or signal.SIGTERM in signals:
            return _KILLED


def _sweep() -> None:
    """Hang up on all descendants, as a terminal does, and kill those that stay.

    A program that is hung up can remove its lock files. Those that lose their parent become our children.
    """
    for pid in _descendants():
        _signal(pid, signal.SIGHUP)
        _signal(pid, signal.SIGCONT)
    pause, hung_up = 0.001, time.monotonic()
    while _reaped()[0] >= 0:
        if time.monotonic() - hung_up > _HANGING_UP:
            for pid in _descendants():
                _signal(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _descendants() -> list[int]:
    """Of this process, those that run; parents before their children."""
    children: dict[bytes, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - nothing more is imported than must be
        if name.isdigit() and len(fields := _fields(int(name))) > 1 and fields[0] != b"Z":
            children.setdefault(fields[1], []).append(int(name))
    found = [os.getpid()]
    for pid in found:
        found += children.get(b"%d" % pid, ())
    return found[1:]


def _reaped() -> tuple[int, int]:
    """A child that has ended, and how; (0, 0) where none has, (-1, 0) where there is none."""
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return -1, 0


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _watch(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def _fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat after the command, which may contain anything; none where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return []
    return text[text.rindex(b")") + 2 :].split()


def _started(pid: int) -> int | None:
    """Its start in ticks since boot, because a pid is given out again. None where it has ended."""
    fields = _fields(pid)
    return None if not fields or fields[0] in (b"Z", b"X") else int(fields[19])


def _close_terminal() -> None:
    """Close the terminal here: it ends when all that was started in it has ended."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)


def _become(libc: ctypes.CDLL, run: str, pid: int, terminal: bool, program: list[str]) -> None:
    """In the child."""
    try:
        os.setsid()
        if terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        with open(f"{run}/launch.json", "rb") as file:  # noqa: PTH123
            launch = json.load(file)
        for name in ("group", "process_group"):
            _join(launch.get(name))
        _enter(libc, pid)
        env = {**launch["env"], **_secrets(pid, launch.get("secrets") or [])}
        if user := launch.get("user"):
            _become_user(user)
        os.chdir(launch["cwd"])
        env |= {"TERM": "xterm-256color"} if terminal else {}
        signal.set_wakeup_fd(-1)
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _run(program, env)
    except OSError as error:
        line = f"trainshed: no shell beside the run: {error.strerror} ({error.filename or 'system call'})\n"
        os.write(2, line.encode(errors="replace"))
    os._exit(126)


def _secrets(pid: int, names: list[str]) -> dict[str, str]:
    """The run's variables of these names, as its program got them: no file of the run has their values."""
    if not names:
        return {}
    with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
        pairs = (os.fsdecode(word).partition("=") for word in file.read().split(b"\0"))
        return {name: value for name, _, value in pairs if name in names}


def _become_user(user: dict[str, Any]) -> None:
    for number in (0, 1, 2):  # it may open its terminal again, by its name
        os.fchown(number, user["uid"], -1)
    rights: dict[str, Any] = {"__name__": "trainshed_rights"}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rights.py")  # noqa: PTH100, PTH118, PTH120
    with open(path, "rb") as file:  # noqa: PTH123
        exec(compile(file.read(), path, "exec"), rights)
    rights["drop_rights"](user["uid"], user["gid"], user["groups"])


def _run(program: list[str], env: dict[str, str]) -> None:
    failed = FileNotFoundError()
    for first in program[:1] or _SHELLS:
        try:
            os.execvpe(first, [first, *program[1:]], env)
        except OSError as error:
            failed = error
    name = program[0] if program else " nor ".join(_SHELLS)
    os.write(2, f"trainshed: cannot run '{name}': {failed.strerror}\n".encode(errors="replace"))
    os._exit(127 if isinstance(failed, FileNotFoundError | NotADirectoryError) else 126)


def _join(group: object) -> None:
    if isinstance(group, str):
        with open(f"{group}/cgroup.procs", "w") as file:  # noqa: PTH123
            file.write("0")


def _enter(libc: ctypes.CDLL, pid: int) -> None:
    """The mounts of the run, where they are not our own; through its user namespace where we are not root."""
    mounts, user = f"/proc/{pid}/ns/mnt", f"/proc/{pid}/ns/user"
    if os.stat(mounts).st_ino == os.stat("/proc/self/ns/mnt").st_ino:  # noqa: PTH116
        return
    space, owner = os.open(mounts, os.O_RDONLY), os.open(user, os.O_RDONLY)
    if libc.setns(space, _NEW_MOUNTS) == 0:
        return
    if libc.setns(owner, _NEW_USER) != 0 or libc.setns(space, _NEW_MOUNTS) != 0:
        raise OSError(ctypes.get_errno(), "its mounts cannot be entered", mounts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
