"""`trainshed stacks`, and how hangs are asked for and shown on the command line."""

import json
from typing import Any

import pytest

from tests.unit.cli.terminal import PARENT, Terminal
from tests.unit.client.scripted import Asked, Handler
from trainshed.cli.events import drawn
from trainshed.cli.submit_options import parsed, read

FRAME = {"function": "load_batch", "file": "/srv/data.py", "line": 17}
MAIN = {"name": "MainThread", "main": True, "waiting": True, "frames": [FRAME]}
OTHER = {"name": "loader", "main": False, "waiting": False, "frames": [{**FRAME, "function": "run"}]}
PYTHON = {"pid": 7, "command": "python train.py", "state": "sleeps in futex_wait", "threads": [MAIN, OTHER]}
NATIVE = {"pid": 8, "command": "sleep 9", "state": "sleeps in hrtimer_nanosleep"}
TOLD = {
    "name": f"{PARENT}/1",
    "attempt": 0,
    "summary": "…",
    "alive": 3,
    "groups": [
        {
            "tasks": ["workerpool0-0", "workerpool1-0"],
            "place": "load_batch (data.py:17)",
            "waiting": True,
        },
    ],
    "replicas": [
        {"task": "workerpool0-0", "processes": [PYTHON, NATIVE], "fault": "One thing is missing."},
        {"task": "workerpool1-0", "processes": [PYTHON]},
    ],
}


@pytest.fixture
def looked(terminal: Terminal) -> Terminal:
    terminal.add("1")
    plain = terminal.script.answer

    def answer(asked: Asked, handler: Handler) -> Any:
        return (200, TOLD) if ":stacks" in asked.path else plain(asked, handler)

    terminal.script.answer = answer
    return terminal


def test_replicas_in_the_same_place_are_shown_once(looked: Terminal) -> None:
    result = looked("stacks", "1")
    assert result.code == 0
    assert result.out.splitlines() == [
        "workerpool0-0, workerpool1-0 wait in load_batch (data.py:17)",
        "  process 7  python train.py  (sleeps in futex_wait)",
        "    load_batch (/srv/data.py:17)",
        "    and 1 more thread: --replica workerpool0-0 shows all",
        "  process 8  sleep 9  (sleeps in hrtimer_nanosleep)",
        "  One thing is missing.",
        "",
        "A sample of 2 of 3 replicas; see another with --replica.",
    ]


def test_of_one_replica_every_thread_is_shown(looked: Terminal) -> None:
    result = looked("stacks", "1", "--replica", "workerpool0-0")
    assert "    thread MainThread, waiting\n      load_batch (/srv/data.py:17)" in result.out
    assert "    thread loader\n      run (/srv/data.py:17)" in result.out
    assert any("task=workerpool0-0" in path for path in looked.script.paths())


def test_for_scripts_it_is_what_the_server_said(looked: Terminal) -> None:
    assert json.loads(looked("stacks", "1", "--json").out) == TOLD


def test_stacks_are_indented_below_their_event_and_left_out_where_it_is_brief() -> None:
    event = {"time": "2026-05-01T12:00:00Z", "reason": "STACKS", "message": "Here.\n  f (a.py:1)"}
    assert drawn([event]).splitlines()[-1] == "      f (a.py:1)"
    assert "a.py" not in drawn([event], brief=True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--hang-after", "90s"], ("90s", "", "")),
        (["--hang-after=2m", "--exit-hang-after", "never"], ("120s", "0s", "")),
        (["--on-hang", "restart", "--hang-after", "0"], ("0s", "", "restart")),
    ],
)
def test_how_hangs_are_watched_may_be_said(words: list[str], expected: tuple[str, ...]) -> None:
    wish = read(["train.py", *words])
    assert wish is not None
    assert (wish.hang_after, wish.exit_hang_after, wish.on_hang) == expected


@pytest.mark.parametrize(("kind", "text"), [("policy", "shout"), ("span or never", "soon"), ("policy", "")])
def test_what_cannot_be_meant_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError):
        parsed(kind, text)
