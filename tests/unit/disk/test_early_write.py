"""Which bytes of a file that grows are begun early, and how often."""

import os
import threading
from pathlib import Path

import pytest

from trainshed.disk import early_write
from trainshed.disk.early_write import AT_ONCE, EarlyWriter, begin_writing


def test_bytes_are_begun_once_and_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[tuple[int, int]]()
    is_slow, may_end, has_ended = threading.Event(), threading.Event(), threading.Event()

    def begin(file: int, first: int, count: int) -> None:
        assert os.fstat(file).st_ino == (tmp_path / "file").stat().st_ino
        begun.append((first, count))
        if first == AT_ONCE:
            is_slow.set()
            may_end.wait(60)
        has_ended.set()

    def ended() -> None:
        assert has_ended.wait(60)
        has_ended.clear()
        for thread in threading.enumerate():
            if thread.name.startswith("early-write"):
                thread.join(60)

    monkeypatch.setattr(early_write, "begin_writing", begin)
    with (tmp_path / "file").open("wb") as file:
        early = EarlyWriter(file.fileno())
        early.add(AT_ONCE - 1)
        assert not begun  # few bytes are left to the system
        early.add(1)
        ended()
        early.add(AT_ONCE)
        assert is_slow.wait(60)
        early.add(AT_ONCE)  # a slow disk holds nobody up
    may_end.set()
    ended()  # the file was closed meanwhile
    assert begun == [(0, AT_ONCE), (AT_ONCE, AT_ONCE)]


def test_what_cannot_be_begun_is_left_to_the_system() -> None:
    reader, writer = os.pipe()
    begin_writing(writer, 0, 1)
    os.close(reader)
    os.close(writer)
