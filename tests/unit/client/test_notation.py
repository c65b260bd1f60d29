import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.client.notation import dumps, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_it_writes_what_json_writes_and_reads_it_back(value: object) -> None:
    assert dumps(value) == json.dumps(value)
    assert loads(dumps(value).encode()) == value
    assert loads(json.dumps(value, ensure_ascii=False, indent=2)) == value


@given(
    st.text()
    | st.sampled_from(["{", "[1,", '{"a"', '"\x01"', "1 2", "", "nul", "[1]x", '{"a" 1}', "\ufeff1"])
)
def test_it_reads_and_refuses_what_json_reads_and_refuses(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            loads(text)
    else:
        assert loads(text) == expected or math.isnan(expected)


def test_what_is_no_number_in_json_is_not_written() -> None:
    for value in (math.nan, math.inf, {"a": [math.inf]}):
        with pytest.raises(ValueError):
            dumps(value)
