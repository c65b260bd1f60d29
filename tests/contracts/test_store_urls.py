"""URLs of databases that cannot be used: a sentence says what to do. Needs no database."""

import sys

import pytest

from trainshed.core.errors import Unavailable
from trainshed.store import SqlStore


async def test_without_psycopg_a_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # an import then fails as if it were not installed
    with pytest.raises(Unavailable, match=r"pip install 'trainshed\[postgres\]'") as refused:
        await SqlStore("postgresql://someone:secret@127.0.0.1:1/none").start()
    assert "secret" not in str(refused.value)


def test_a_url_that_cannot_be_read_is_refused_without_its_password() -> None:
    with pytest.raises(Unavailable, match=r"cannot be read.*postgresql://user@host/name") as refused:
        SqlStore("postgresql://someone:secret@[::1/none")
    assert "secret" not in str(refused.value)
