"""A session lasts its time, ends with the token, and cannot be made by others."""

from datetime import UTC, datetime, timedelta

import pytest

from trainshed.core.permission import OWNER
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


def test_servers_side_by_side_have_cookies_of_their_own():
    assert sessions().cookie != sessions(secret=b"another secret, also long enough").cookie
