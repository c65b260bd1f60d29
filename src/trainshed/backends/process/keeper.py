"""Makes the keeper and starts it: compiled once where there is a C compiler, else as a shell script.

start.py calls it for a run whose directory is prepared (run.py). It never waits for a keeper beyond its exec.
A keeper inherits nothing of the server but what the request names.
"""

import contextlib
import ctypes
import logging
import os
import subprocess
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainshed.backends.machine.compiled import compiled
from trainshed.backends.process.job_user import JobUser
from trainshed.backends.process.net import NO_GROUPS, RunGroups
from trainshed.disk.regular_file import open_regular

_log = logging.getLogger(__name__)
_SOURCE = Path(__file__).with_name("keeper.c")
_SCRIPT = Path(__file__).with_name("keeper.sh")
_SHELL = "/bin/sh"
_PR_SET_CHILD_SUBREAPER = 36
_OUTPUT = os.O_WRONLY | os.O_APPEND | os.O_CREAT


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """What a keeper is to start, and where."""

    run: str
    work: str
    groups: RunGroups = NO_GROUPS
    argv: Sequence[str]
    env: Mapping[str, str]
    stdout: str
    stderr: str
    hosts: str = ""  # the file it finds as /etc/hosts (google_hosts.py); only a compiled keeper can show it
    view: str = ""  # the folder it is to see as /gcs (views.py); only a compiled keeper can show it
    lazy: bool = False  # mount it when a program opens /gcs; the folder need not be there before
    new_home: bool = False  # its HOME is an empty folder
    user: JobUser | None = None  # who it is to be; None: who the server is. Only by a compiled keeper
    hold: bool = False  # keep its mounts and cgroup should it end badly; only by a keeper that `holds`

    @property
    def words(self) -> list[str]:
        hosts = ["--hosts", self.hosts] if self.hosts else []
        view = ["--lazy", self.view, "0"] if self.lazy else ["--view", self.view] if self.view else []
        hold = ["--hold"] if self.hold else []
        join = [word for group in self.groups.joined for word in ("--join", group)]
        user = ["--user", *self.user.words] if self.user is not None else []
        return [*hosts, *view, *hold, *join, *user, self.run, self.work, self.groups.own or "-", *self.argv]


class Keeper(Protocol):
    @property
    def joins_groups(self) -> bool:
        """Whether it can put a program into a cgroup without making it wait."""
        ...

    @property
    def holds(self) -> bool:
        """Whether it can keep the place of a program that has ended."""
        ...

    def spawn(self, request: StartRequest) -> int:
        """Start a keeper; its pid. OSError or ValueError where the system refuses."""
        ...


@dataclass(frozen=True, slots=True)
class CompiledKeeper:
    path: str
    joins_groups: bool = True
    holds: bool = True

    def spawn(self, request: StartRequest) -> int:
        # The keeper makes its own session, closes what else is open and resets signals itself.
        with _outputs(request) as (out, err):
            return os.posix_spawn(
                self.path,
                ["trainshed-keeper", *request.words],
                request.env,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, out, 1),
                    (os.POSIX_SPAWN_DUP2, err, 2),
                ],
            )


class ShellKeeper:
    joins_groups = False
    holds = False

    def __init__(self) -> None:
        # The text itself is the argument: a shell reads a file as it goes, and an upgrade may change it.
        self._script = _SCRIPT.read_text()
        libc = ctypes.CDLL(None)
        self._prctl = libc.prctl
        self._signal = libc.signal
        self._signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        self._signal.restype = ctypes.c_void_p

    def spawn(self, request: StartRequest) -> int:
        if request.user is not None:
            raise ValueError("there is no C compiler to build what makes it another user's (--run-as)")
        with _outputs(request) as (out, err):
            child = subprocess.Popen(
                [_SHELL, "-c", self._script, "keeper", *request.words],
                env=request.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=self._adopt_descendants,  # noqa: PLW1509 - nothing but system calls happen there
            )
        child.returncode = 0  # it is watched and reaped by pid; the object must not complain when dropped
        return child.pid

    def _adopt_descendants(self) -> None:
        self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # A shell cannot undo what it was born ignoring, as SIGHUP under nohup.
        for number in range(1, 32):
            self._signal(number, None)  # SIG_DFL


@contextlib.contextmanager
def _outputs(request: StartRequest) -> Generator[list[int]]:
    """The two output files, open here: a spawn that opened them would wait, and the server with it."""
    opened: list[int] = []
    try:
        for path in (request.stdout, request.stderr):
            opened.append(open_regular(path, _OUTPUT))
            if request.user is not None:  # it may open its output again, as /dev/stdout
                os.fchown(opened[-1], request.user.uid, request.user.gid)
            os.set_blocking(opened[-1], True)  # as a program expects its output to be
        yield opened
    finally:
        for handle in opened:
            os.close(handle)


def make_keeper(tools: Path, compiler: str = "cc") -> Keeper:
    """The compiled keeper, from the cache in `tools` or fresh; the one in shell where that fails."""
    try:
        # Static where it can be: it starts faster, and a program's LD_PRELOAD cannot reach it.
        if path := compiled(_SOURCE, tools, compiler, kinds=(("-static",), ())):
            return CompiledKeeper(str(path))
    except OSError as error:
        _log.warning("the keeper cannot be compiled: %s", error)
    _log.warning("replicas are held by the shell keeper: there is no compiled one")
    return ShellKeeper()
