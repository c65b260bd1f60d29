"""A session lasts its time, ends with the token, and cannot be made by others."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainshed.core.accounts.permission import OWNER
from trainshed.core.errors import Unavailable
from trainshed.identity.ended_sessions import EndedSessions
from trainshed.identity.session import LIFE, SignedSessions

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
SECRET = b"a secret of the home, long enough"


def sessions(token: str = "token", secret: bytes = SECRET) -> SignedSessions:
    return SignedSessions(secret, lambda: token)


def test_a_session_is_known_to_every_server_of_the_home_until_it_ends():
    word, lasts = sessions().issue(NOW)
    assert lasts == LIFE
    assert sessions().principal(word, NOW + LIFE - timedelta(seconds=1)) == OWNER
    assert sessions().principal(word, NOW + LIFE) is None


def test_a_session_ends_when_the_token_changes():
    word, _ = sessions("before").issue(NOW)
    assert sessions("after").principal(word, NOW) is None


def test_a_session_of_another_home_opens_nothing():
    word, _ = sessions(secret=b"another secret, also long enough").issue(NOW)
    assert sessions().principal(word, NOW) is None


def test_a_session_that_was_changed_opens_nothing():
    word, _ = sessions().issue(NOW)
    for changed in ("9" + word, word[:-1], word + "x", "\udcff" + word):
        assert sessions().principal(changed, NOW) is None


@pytest.mark.parametrize("word", ["", ".", "1", "1.", ".x", "x.y", "٣.x", "9" * 400 + ".x"])
def test_what_is_no_session_opens_nothing(word: str):
    assert sessions().principal(word, NOW) is None


def test_an_older_session_of_the_owner_still_counts_and_can_be_ended():
    signer = sessions()
    end = str(int((NOW + LIFE).timestamp()))
    key = hashlib.blake2b(b"token", key=SECRET[:64], person=b"session").digest()
    digest = hmac.digest(key, end.encode(), "sha256")
    word = f"{end}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
    assert signer.principal(word, NOW) == OWNER
    signer.end(word, NOW)
    assert signer.principal(word, NOW) is None


def test_what_is_no_session_cannot_be_ended():
    signer = sessions()
    for word in ("", "x.y", "\udcff.\udcff", sessions("another").issue(NOW)[0]):
        signer.end(word, NOW)


def test_sessions_that_were_ended_are_known_to_a_later_server_until_they_would_have_ended(tmp_path: Path):
    path = tmp_path / "ended-sessions.json"

    def later() -> SignedSessions:
        return SignedSessions(SECRET, lambda: "token", ended=EndedSessions(path))

    first, kept = later().issue(NOW)[0], later().issue(NOW)[0]
    assert not path.exists()
    later().end(first, NOW)
    assert later().principal(first, NOW) is None and later().principal(kept, NOW) == OWNER
    assert path.stat().st_mode & 0o777 == 0o600 and first.rpartition(".")[2] not in path.read_text()
    later().end(kept, NOW + timedelta(days=1))
    assert len(json.loads(path.read_text())) == 2
    other = later().issue(NOW + timedelta(days=3))[0]
    later().end(other, NOW + LIFE)
    assert len(json.loads(path.read_text())) == 1


def test_who_signs_out_is_told_when_that_cannot_be_written_down(tmp_path: Path):
    signer = SignedSessions(SECRET, lambda: "token", ended=EndedSessions(tmp_path / "gone" / "ended.json"))
    word, _ = signer.issue(NOW)
    with pytest.raises(Unavailable, match="until the server starts again"):
        signer.end(word, NOW)
    assert signer.principal(word, NOW) is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": "b"}', '{"a": 1e999}', "\0"])
def test_a_damaged_file_of_ended_sessions_keeps_nobody_out(tmp_path: Path, text: str):
    path = tmp_path / "ended-sessions.json"
    path.write_text(text)
    signer = SignedSessions(SECRET, lambda: "token", ended=EndedSessions(path))
    word, _ = signer.issue(NOW)
    assert signer.principal(word, NOW) == OWNER
    signer.end(word, NOW)
    assert signer.principal(word, NOW) is None


def test_servers_side_by_side_have_cookies_of_their_own():
    assert sessions().cookie != sessions(secret=b"another secret, also long enough").cookie
