"""What py-spy and faulthandler print, read; and when a system lets one process look into another."""

import re
from pathlib import Path

import pytest

from tests.builders import a_placement
from trainshed.backends.machine import spy
from trainshed.backends.process import ask
from trainshed.backends.process.keeper import StartRequest
from trainshed.backends.process.render import ProcessFrame, render
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.stacks import StackFrame
from trainshed.core.names import ReplicaName, RunKey

SPIED = b"""[{"pid": 5, "thread_id": 1, "thread_name": "Thread-1", "os_thread_id": 6, "active": true,
 "owns_gil": false, "frames": [{"name": "run", "filename": "/lib/threading.py", "line": 9}]},
 {"pid": 5, "thread_id": 2, "thread_name": null, "os_thread_id": 5, "active": false, "owns_gil": false,
 "frames": [{"name": "load", "filename": "/w/data.py", "line": 17, "locals": null},
            {"name": "<module>", "filename": "/w/train.py", "line": 3}]}]"""
DUMPED = """Thread 0x0000ffff8b7ff1e0 (most recent call first):
  File "/lib/threading.py", line 324 in wait
  File "/lib/threading.py", line 1045 in _bootstrap_inner

Thread 0x0000ffff8afef1e0 [loader] (most recent call first):
  File "/w/a file.py", line 1 in <lambda>

Current thread 0x0000ffff8d0c0020 (most recent call first):
  File "/w/data.py", line 17 in load
  File "/w/train.py", line 3 in <module>
"""
MAIN = (StackFrame("load", "/w/data.py", 17), StackFrame("<module>", "/w/train.py", 3))


def test_what_py_spy_says_is_read_main_thread_first() -> None:
    main, other = spy.read_threads(SPIED)
    assert (main.name, main.is_main, main.waits, main.frames) == ("MainThread", True, True, MAIN)
    assert (other.name, other.is_main, other.waits) == ("Thread-1", False, False)


@pytest.mark.parametrize("text", [b"", b"no json", b"{}", b"[1, null]", b"[[]]"])
def test_what_is_not_understood_is_nothing(text: bytes) -> None:
    assert spy.read_threads(text) == ()


def test_what_faulthandler_writes_is_read_main_thread_first() -> None:
    main, first, second = ask.read_threads(DUMPED)
    assert (main.name, main.is_main, main.frames) == ("MainThread", True, MAIN)
    assert (first.name, second.name) == ("", "loader")
    assert second.frames == (StackFrame("<lambda>", "/w/a file.py", 1),)
    assert ask.read_threads("") == ask.read_threads("something else\n") == ()


@pytest.mark.parametrize(
    ("scope", "caps", "expected"),
    [
        (None, "0", True),
        ("0", "0", True),
        ("1", "0", False),
        ("1", "80000", True),
        ("2", "80000", True),
        ("3", "ffffffff", False),
    ],
)
def test_yama_lets_only_the_privileged_look(
    tmp_path: Path, scope: str | None, caps: str, expected: bool
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text(f"Name:\tx\nCapEff:\t{caps:0>16}\n")
    if scope is not None:
        folder = tmp_path / "sys" / "kernel" / "yama"
        folder.mkdir(parents=True)
        (folder / "ptrace_scope").write_text(f"{scope}\n")
    assert spy.may_look(str(tmp_path)) is expected


def test_the_program_and_the_server_mean_the_same_signal() -> None:
    text = (ask.CUSTOMIZE / "sitecustomize.py").read_text()
    found = re.search(r"^SIGNAL = (\d+)", text, re.MULTILINE)
    assert found is not None and int(found[1]) == ask.SIGNAL
    assert f'"{{folder}}/{ask.FILE}"' in text


def an_order(**env: str) -> StartRequest:
    return StartRequest(run="/r", work="/w", argv=("python",), env=env, stdout="o", stderr="e")


def test_a_fresh_start_offers_stacks_only_where_it_is_to() -> None:
    assert ask.offering(an_order(A="1")) == an_order(A="1")
    assert ask.offering(an_order(TRAINSHED_STACKS="1")).env["PYTHONPATH"] == str(ask.CUSTOMIZE)
    both = ask.offering(an_order(TRAINSHED_STACKS="1", PYTHONPATH="/mine"))
    assert both.env["PYTHONPATH"] == f"{ask.CUSTOMIZE}:/mine"


@pytest.mark.parametrize(("watched", "asks"), [(True, True), (True, False), (False, True)])
def test_only_a_watched_program_that_nobody_may_look_into_is_told_to_offer(watched: bool, asks: bool) -> None:
    launch = Launch(
        key=RunKey(ReplicaName("j", 0, 0, 0), 0),
        image="trainshed/python:3",
        command=("python",),
        args=(),
        placement=a_placement(0, 0),
        watched=watched,
    )
    frame = ProcessFrame(
        jobs=Path("/jobs"), tools=Path("/bin"), python="/bin/python3", version="3.11", environ={}, asks=asks
    )
    assert ("TRAINSHED_STACKS" in render(launch, frame).env) is (watched and asks)
