"""What is asked of an engine for a shell, and what its answers are taken apart into."""

from typing import cast

import pytest

from trainshed.backends.container.engine import Engine, TerminalConnection
from trainshed.backends.container.run import ContainerRun
from trainshed.backends.container.shell import ContainerTerminal, exec_body
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.shell_port import Screen


def test_a_shell_on_a_terminal_asks_for_no_more_rights_than_the_run_has():
    assert exec_body(("bash",), Screen(), "mark") == {
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": True,
        "Privileged": False,
        "Cmd": ["bash"],
        "Env": ["TRAINSHED_SHELL=mark", "TERM=xterm-256color"],
    }


def test_without_a_screen_there_is_no_terminal_and_nothing_said_of_one():
    body = exec_body(("cat", "-"), None, "mark")
    assert (body["Tty"], body["Env"]) == (False, ["TRAINSHED_SHELL=mark"])


class Line:
    """What an engine sends, in these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    async def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


@pytest.mark.parametrize("cut", [1, 3, 8, 11, 1000])
async def test_without_a_terminal_both_streams_are_taken_out_of_their_frames(cut: int):
    sent = b"\1\0\0\0\0\0\0\5first" + b"\2\0\0\0\0\0\0\0" + b"\2\0\0\0\0\0\0\7 second" + b"\1\0\0"
    line = Line(*(sent[begin : begin + cut] for begin in range(0, len(sent), cut)))
    run = ContainerRun(RunKey(ReplicaName("j", 0, 0, 0), 0), "/run", "box")
    terminal = ContainerTerminal(cast(Engine, None), run, "id", "mark", cast(TerminalConnection, line))
    got = b""
    while piece := await terminal.read():
        got += piece
    assert got == b"first second"
