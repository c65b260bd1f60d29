import logging
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trainshed.core.accounts.permission import OWNER
from trainshed.core.errors import Forbidden, Unauthenticated, Unavailable
from trainshed.identity import NoAuthentication, TokenFile
from trainshed.identity.token import FRESH


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "token"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_start_makes_a_token_only_its_owner_can_read(path: Path) -> None:
    made = TokenFile(path)
    assert mode(path) == 0o600
    assert len(made.token) >= 32
    assert path.read_text().strip() == made.token
    assert [file.name for file in path.parent.iterdir()] == ["token"]


def test_later_starts_keep_it(path: Path) -> None:
    first = TokenFile(path).token
    assert TokenFile(path).token == first


def test_two_homes_have_two_tokens(tmp_path: Path) -> None:
    assert TokenFile(tmp_path / "a").token != TokenFile(tmp_path / "b").token


def test_many_first_starts_at_once_agree_on_one_token(path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(lambda _: TokenFile(path).token, range(32)))
    assert len(found) == 1
    assert [file.name for file in path.parent.iterdir()] == ["token"]


def test_a_file_open_to_others_is_closed_with_a_warning(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = TokenFile(path).token
    path.chmod(0o644)
    assert TokenFile(path).token == token
    assert mode(path) == 0o600
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and str(path) in record.getMessage()
    assert token not in caplog.text


@pytest.mark.parametrize("content", ["", "\n", "short", "two words of a token here", "ünïcödeünïcödeünïcöde"])
def test_a_file_without_a_token_is_refused(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(Unavailable, match="Remove it"):
        TokenFile(path)
    assert path.read_text() == content


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="file/token"):
        TokenFile(tmp_path / "file" / "token")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_right_token_lets_in(path: Path, scheme: str) -> None:
    door = TokenFile(path)
    assert door.authenticate(f"{scheme} {door.token}") == OWNER
    assert door.authenticate(f"  {scheme}   {door.token} ") == OWNER


@pytest.mark.parametrize("header", [None, "", "  "])
def test_without_a_token_one_is_told_how_to_get_it(path: Path, header: str | None) -> None:
    door = TokenFile(path)
    with pytest.raises(Forbidden) as refused:
        door.authenticate(header)
    assert "trainshed env" in str(refused.value)
    assert "the token file in the server's home" in str(refused.value)
    assert str(path) not in str(refused.value)
    assert door.token not in str(refused.value)


def test_a_wrong_token_is_refused(path: Path) -> None:
    door = TokenFile(path)
    token = door.token
    wrong = ["x", "Bearer", "Bearer ", f"Bearer {token}x", f"Bearer {token[:-1]}", f"Basic {token}", token]
    for header in [*wrong, f"Bearer {token.swapcase()}", "Bearer ü\udc80", f"Bearer {token} {token}"]:
        with pytest.raises(Unauthenticated) as refused:
            door.authenticate(header)
        assert token not in str(refused.value)
        assert str(path) not in str(refused.value)


@pytest.mark.parametrize("end", ["", "\n"])
def test_another_file_in_its_place_is_the_token_from_then_on(path: Path, end: str) -> None:
    door = TokenFile(path)
    before, after = door.token, "a-token-that-its-owner-made" + end
    draft = path.with_name("draft")
    draft.write_text(after)
    draft.chmod(0o600)
    draft.replace(path)
    assert door.authenticate(f"Bearer {after.strip()}") == OWNER
    with pytest.raises(Unauthenticated):
        door.authenticate(f"Bearer {before}")


def test_a_replaced_token_opens_nothing_after_a_second(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door = TokenFile(path)
    before, began = door.token, time.monotonic()
    path.write_text("a-token-that-its-owner-made")
    monkeypatch.setattr(time, "monotonic", lambda: began + FRESH)
    with pytest.raises(Unauthenticated):
        door.authenticate(f"Bearer {before}")


@pytest.mark.parametrize("content", [None, "", "short"])
def test_a_file_without_a_token_in_its_place_changes_nothing(path: Path, content: str | None) -> None:
    door = TokenFile(path)
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    assert door.authenticate(f"Bearer {door.token}") == OWNER
    with pytest.raises(Unauthenticated):
        door.authenticate("Bearer short")
    path.write_text("a-token-that-its-owner-made")
    assert door.authenticate("Bearer a-token-that-its-owner-made") == OWNER


@pytest.mark.parametrize("header", [None, "", "Bearer whatever"])
def test_an_open_door_lets_everybody_in(header: str | None) -> None:
    assert NoAuthentication().authenticate(header) == OWNER
