"""What a call says about itself."""

import pytest

from trainshed.api.call import Call
from trainshed.core.errors import Invalid


def a_call(**headers: str) -> Call:
    return Call(path={}, query={}, body={}, headers=headers, base_url="")


def test_an_idempotency_key_is_taken_as_it_was_sent_or_is_empty() -> None:
    assert a_call(**{"idempotency-key": "k" * 255}).idempotency_key() == "k" * 255
    assert a_call().idempotency_key() == ""


def test_an_idempotency_key_that_is_too_long_is_refused_by_its_header() -> None:
    with pytest.raises(Invalid) as refused:
        a_call(**{"idempotency-key": "k" * 256}).idempotency_key()
    assert [one.field for one in refused.value.violations] == ["Idempotency-Key"]


@pytest.mark.parametrize("text", ["9" * 4400, "9" * 19, "²", "-1", "1e3", "1_0"])
def test_a_number_that_no_database_holds_is_refused_by_its_name(text: str) -> None:
    call = Call(path={}, query={"limit": text}, body={}, headers={}, base_url="")
    with pytest.raises(Invalid) as refused:
        call.number("limit")
    assert refused.value.violations[0].field == "limit"
