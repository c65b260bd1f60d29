"""Progress of copies: a bar for people, nothing for scripts, and an end for all when one fails."""

import io
import sys
import threading

import pytest

from trainshed.cli import carry
from trainshed.cli.carry import TransferProgress, TransferStopped, each


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_a_bar_and_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry, "EVERY", 0.0)
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = TransferProgress(2, 4_000_000)
        progress.add(1_000_000)
        progress.add(0, 1)
        progress.end()
        told = stream.getvalue()
        assert ("25%  1/2 files  1.0 of 4.0 MB" in told) == shown
        assert bool(told) == shown


def test_when_one_fails_the_others_stop_at_their_next_piece() -> None:
    progress, begun = TransferProgress(2, 0), threading.Event()
    stopped: list[int] = []

    def work(number: int) -> None:
        if number == 0:
            begun.wait(30)
            raise ValueError("no")
        begun.set()
        try:
            while True:
                progress.add(1)
        except TransferStopped:
            stopped.append(number)
            raise

    with pytest.raises(ValueError, match="no"):
        each([0, 1], work, progress.stop)
    assert stopped == [1]
