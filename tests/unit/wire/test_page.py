import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.errors import Invalid
from trainshed.wire import page
from trainshed.wire.page import PageTokens

CURSOR = ("2026-01-31T12:00:00.000000Z", "123")
PAGES = PageTokens.signed_with(b"secret")


@given(st.tuples(st.text(), st.text()), st.text())
def test_a_token_leads_back_to_its_place(cursor: tuple[str, str], question: str) -> None:
    token = PAGES.encode(cursor, page.fingerprint(question))
    assert PAGES.decode(token, page.fingerprint(question)) == cursor
    assert token.isascii()
    assert not set("+/=&?") & set(token)


def test_no_token_is_the_first_page() -> None:
    assert PAGES.decode("", "x") is None


def test_a_token_made_for_another_question_is_refused() -> None:
    token = PAGES.encode(CURSOR, page.fingerprint("projects/p1", "state=RUNNING", ""))
    with pytest.raises(Invalid, match="another list"):
        PAGES.decode(token, page.fingerprint("projects/p1", "state=FAILED", ""))


@given(st.integers(min_value=0, max_value=40), st.integers(min_value=1, max_value=63))
def test_a_token_of_which_anything_was_changed_is_refused(place: int, step: int) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    token = PAGES.encode(CURSOR, "x")
    other = letters[(letters.index(token[place]) + step) % 64]
    with pytest.raises(Invalid) as caught:
        PAGES.decode(token[:place] + other + token[place + 1 :], "x")
    assert caught.value.violations[0].field == "page_token"


@pytest.mark.parametrize("token", ["x", "é", "AAAA", "\0", "=" * 8, "A" * 5000, "a b", "[1,2]"])
def test_a_token_nobody_gave_out_is_refused(token: str) -> None:
    with pytest.raises(Invalid, match="not a token this server gave out"):
        PAGES.decode(token, "x")


def test_a_token_that_was_made_by_hand_is_refused() -> None:
    question = hashlib.blake2b(b"x", digest_size=8).digest()
    place = b'["not a time", "\\ud800"]'
    check = hashlib.blake2b(question + place, digest_size=8).digest()
    with pytest.raises(Invalid, match="not a token this server gave out"):
        PAGES.decode(base64.urlsafe_b64encode(check + question + place).decode().rstrip("="), "x")


def test_a_token_outlives_a_restart_and_is_of_its_home_only() -> None:
    token = PageTokens.signed_with(b"one home").encode(CURSOR, "x")
    with pytest.raises(Invalid):
        PageTokens.signed_with(b"another home").decode(token, "x")
    assert PageTokens.signed_with(b"one home").decode(token, "x") == CURSOR


@pytest.mark.parametrize(
    ("asked", "given"), [(None, 100), ("", 100), ("0", 100), ("5", 5), (5, 5), ("5000", 1000)]
)
def test_a_page_has_a_size_within_reason(asked: object, given: int) -> None:
    assert page.parse_size(asked) == given


@pytest.mark.parametrize("asked", ["-1", "x", "1.5", True, str(2**40)])
def test_a_size_that_is_none_is_refused(asked: object) -> None:
    with pytest.raises(Invalid, match="page_size must"):
        page.parse_size(asked)
