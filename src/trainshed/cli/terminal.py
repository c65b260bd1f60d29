"""This terminal, or whatever stdin and stdout are, joined to a program elsewhere until that ends.

A terminal is made raw, so that every key goes to the program (Ctrl-C too), and is itself again whatever
happens. Nothing blocks but the wait for all sides together: neither may stop the other.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from trainshed.cli.failure import CommandFailed
from trainshed.client.websocket import WebSocket

PIECE = 1 << 15
SILENCE = 90.0  # seconds: the server pings more often than this
_ENDED = json.dumps({"end": True})


def screen() -> dict[str, int]:
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    return {"rows": rows or 24, "columns": columns or 80}


def converse(socket: WebSocket, *, terminal: bool) -> int:
    """The program's exit code."""
    if not terminal:
        return _exchange(socket, None)
    with _raw(sys.stdin.fileno()), _resizes() as resized:
        return _exchange(socket, resized)


def _exchange(socket: WebSocket, resized: int | None) -> int:
    stdin: int | None = sys.stdin.fileno()
    heard_at = time.monotonic()
    while True:
        reads: list[WebSocket | int] = [socket, *(item for item in (resized,) if item is not None)]
        if stdin is not None and not socket.has_unsent:
            reads.append(stdin)
        patience = 0 if socket.has_unread else SILENCE - (time.monotonic() - heard_at)
        ready, _, _ = select.select(reads, [socket] if socket.has_unsent else [], [], max(patience, 0))
        if socket in ready or socket.has_unread:
            heard_at = time.monotonic()
            for message in socket.hear():
                if isinstance(message, bytes):
                    _print(message)
                elif (code := _exit_code(message)) is not None:
                    return code
            if socket.is_over:
                raise CommandFailed("the server hung up: it ended, or the shell was closed there")
        elif time.monotonic() - heard_at > SILENCE:
            raise CommandFailed(f"nothing was heard of the server for {SILENCE:.0f} seconds")
        if stdin is not None and stdin in ready:
            stdin = _read(stdin, socket)
        if resized is not None and resized in ready:
            os.read(resized, PIECE)
            socket.say(json.dumps({"screen": screen()}))
        socket.flush()


def _read(stdin: int, socket: WebSocket) -> int | None:
    """What was typed, on its way; None once there is no more."""
    try:
        data = os.read(stdin, PIECE)
    except OSError:
        data = b""
    socket.say(data or _ENDED)
    return stdin if data else None


def _exit_code(message: str) -> int | None:
    """The exit code, where it is that."""
    words = json.loads(message)
    if "error" in words:
        raise CommandFailed(str(words["error"]))
    return int(words["exit"]) if "exit" in words else None


def _print(data: bytes) -> None:
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]


@contextmanager
def _raw(stdin: int) -> Generator[None]:
    import termios
    import tty

    before = termios.tcgetattr(stdin)

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    handlers = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        tty.setraw(stdin, termios.TCSADRAIN)  # what was typed ahead is kept
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _nothing(_number: int, _frame: object) -> None:
    """Caught, so that the wait is told of it."""


@contextmanager
def _resizes() -> Generator[int]:
    """A descriptor that is readable after the screen has changed its size."""
    ears, mouth = os.pipe()
    os.set_blocking(mouth, False)
    old = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    before = signal.signal(signal.SIGWINCH, _nothing)
    try:
        yield ears
    finally:
        signal.set_wakeup_fd(old)
        signal.signal(signal.SIGWINCH, before)
        os.close(ears)
        os.close(mouth)
