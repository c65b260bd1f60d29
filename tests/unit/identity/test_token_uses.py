"""The days on which tokens were last used: noted once a day, kept over a restart, and never in the way."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from trainshed.identity import token_uses
from trainshed.identity.token_uses import TokenUses

NOW = datetime(2026, 11, 18, 23, 59, tzinfo=UTC)


class WrittenAtOnce:
    """In place of a thread: what it would do is done when it is started, and counted."""

    count = 0

    def __init__(self, *, target, name: str, daemon: bool) -> None:
        self._target = target

    def start(self) -> None:
        WrittenAtOnce.count += 1
        self._target()


@pytest.fixture(autouse=True)
def writes(monkeypatch: pytest.MonkeyPatch) -> None:
    WrittenAtOnce.count = 0
    monkeypatch.setattr(token_uses, "Thread", WrittenAtOnce)


def test_a_token_that_is_used_again_and_again_is_written_once_a_day(tmp_path: Path):
    uses = TokenUses(tmp_path / "uses.json", lambda: {"a"})
    for _ in range(1000):
        uses.note("a", NOW)
    assert WrittenAtOnce.count == 1
    uses.note("a", NOW + timedelta(minutes=1))
    assert WrittenAtOnce.count == 2
    again = TokenUses(tmp_path / "uses.json", lambda: {"a"})
    assert (again.last_day("a"), again.last_day("b")) == (date(2026, 11, 19), None)


def test_a_token_that_is_gone_leaves_the_file(tmp_path: Path):
    uses = TokenUses(tmp_path / "uses.json", lambda: {"b"})
    uses.note("a", NOW)
    uses.note("b", NOW)
    assert json.loads((tmp_path / "uses.json").read_text()) == {"b": "2026-11-18"}


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 7}', '{"a": "yesterday"}', "\x00"])
def test_a_damaged_file_keeps_nobody_out(tmp_path: Path, text: str):
    path = tmp_path / "uses.json"
    path.write_text(text)
    uses = TokenUses(path, lambda: {"a"})
    assert uses.last_day("a") is None
    uses.note("a", NOW)
    assert TokenUses(path, lambda: {"a"}).last_day("a") == NOW.date()


def test_a_folder_that_cannot_be_written_keeps_nobody_out(tmp_path: Path):
    uses = TokenUses(tmp_path / "gone" / "uses.json", lambda: {"a"})
    uses.note("a", NOW)
    assert uses.last_day("a") == NOW.date()
