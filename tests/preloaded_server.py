"""Starts servers as copies of a process that has imported all they need: to import takes as long as a test.

    process = CopiedServer(["--home", "/tmp/h"], env, folder, log)  # has what tests need of subprocess.Popen

The first call starts that process, and it ends with its caller. Of a copy /proc shows the command that
`python -m trainshed.server` would have, but the environment of the process it was copied from.
"""

import atexit
import ctypes
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

COMMAND = (sys.executable, "-P", "-m", "trainshed.server")
_ROOM = 4096  # bytes for the command of a copy
_MESSAGE = 1 << 17


class CopiedServer:
    def __init__(self, words: Sequence[str], env: Mapping[str, str], folder: Path, log: IO[bytes]) -> None:
        self.args = [*COMMAND, *words]
        self.returncode: int | None = None
        ours, theirs = os.pipe()
        message = json.dumps({"words": list(words), "env": dict(env), "folder": str(folder)}).encode()
        socket.send_fds(_preloaded()[0], [message], [log.fileno(), theirs])
        os.close(theirs)
        self._said = os.fdopen(ours, "rb")
        self.pid = int(self._said.readline())

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._said], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._said.readline())
            self._said.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _preloaded() -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """The process that is copied, and where it is told what to start. When that closes, it ends."""
    from tests.programs import prebuilt_programs  # not for that process, which cannot import `tests`

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MESSAGE)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno()), prebuilt_programs(), "-" * _ROOM],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the tests, which end their servers
        )
    atexit.register(_end, ours, process)
    return ours, process


def _end(channel: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    channel.close()
    process.kill()
    process.wait()


def _words_of_copy(channel: socket.socket) -> list[str]:
    """Returns in each copy; the process that is copied waits in here until its caller is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks for the end of who waits for a copy
    while True:
        data, descriptors, *_ = socket.recv_fds(channel, _MESSAGE, 2)
        if not data:
            os._exit(0)
        log, said = descriptors
        if os.fork() == 0:
            break
        os.close(log)
        os.close(said)
    channel.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        os.write(said, b"%d\n" % pid)
        os.write(said, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    os.close(said)
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    asked = json.loads(data)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    _show([*COMMAND, *asked["words"]])
    return asked["words"]


def _show(command: list[str]) -> None:
    """As this process's command in /proc, where the server itself looks for servers."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # arg_start, arg_end
    shown = b"".join(word.encode() + b"\0" for word in command)
    assert len(shown) < end - begin, "_ROOM is too small for this command"
    ctypes.memmove(begin, shown.ljust(end - begin, b"\0"), end - begin)


if __name__ == "__main__":
    from trainshed.backends.machine import compiled
    from trainshed.server import load

    compiled.PREBUILT = Path(sys.argv[2])
    run = load()
    sys.exit(run(_words_of_copy(socket.socket(fileno=int(sys.argv[1])))))
