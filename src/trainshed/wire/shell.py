"""Requests for a shell, and the JSON text messages of its WebSocket. For `api/shells.py`.

Input and output of the terminal are binary messages. The text messages are:

{"screen": {"rows": 24, "columns": 80}}   to the server: the screen has a new size
{"end": true}                             to the server: end of input
{"exit": 0}                               from the server, last: the program's exit code
{"error": "..."}                          from the server, last: why there is no exit code
"""

import json
from dataclasses import dataclass

from trainshed.core.errors import Invalid, Violation
from trainshed.core.shell_port import Screen
from trainshed.wire.base import Message, flag, int32, int64, part, read, text, texts
from trainshed.wire.faults import Faults
from trainshed.wire.json_body import parse_json

MOST_SCREEN = 4096  # rows, columns


class _Screen(Message):
    rows: int = int32()
    columns: int = int32()


class _Shell(Message):
    task: str = text()
    command: tuple[str, ...] = texts()
    screen: _Screen | None = part(_Screen)


class _Words(Message):
    screen: _Screen | None = part(_Screen)
    end: bool = flag()
    taken: int | None = int64(None)


@dataclass(frozen=True, slots=True)
class Words:
    screen: Screen | None = None
    end: bool = False
    taken: int | None = None


@dataclass(frozen=True, slots=True)
class ShellRequest:
    task: str
    command: tuple[str, ...]
    screen: Screen | None


def parse_shell(body: object) -> ShellRequest:
    faults = Faults("shell")
    asked = read(_Shell, body, faults)
    screen = _checked(asked.screen, faults)
    faults.settle()
    return ShellRequest(asked.task, tuple(asked.command), screen)


def parse_words(message: str) -> Words:
    """A text message of a client while a shell is open."""
    faults = Faults("message")
    try:
        body = parse_json(message)
    except Invalid as error:
        raise Invalid((Violation("message", "A text between terminals must be JSON."),)) from error
    words = read(_Words, body, faults)
    screen = _checked(words.screen, faults)
    faults.settle()
    return Words(screen, words.end, words.taken)


def exit_words(code: int) -> str:
    return json.dumps({"exit": code})


def error_words(sentence: str) -> str:
    return json.dumps({"error": sentence})


def _checked(screen: _Screen | None, faults: Faults) -> Screen | None:
    if screen is None:
        return None
    for name, value in (("rows", screen.rows), ("columns", screen.columns)):
        if not 0 < value <= MOST_SCREEN:
            faults.add(f"screen.{name}", f"must be a number from 1 to {MOST_SCREEN}, not {value}.")
    return Screen(screen.rows, screen.columns)
