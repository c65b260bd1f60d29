"""What is said about an object, as the headers of a remote store and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.buckets.remote import labels
from trainshed.core.bucket import Attributes

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


@given(
    st.builds(
        Attributes,
        content_type=TEXTS,
        content_encoding=TEXTS,
        content_disposition=TEXTS | st.just("attachment"),
        cache_control=TEXTS,
        custom_time=TEXTS,
        metadata=st.dictionaries(TEXTS, TEXTS, max_size=4),
    )
)
def test_whatever_is_said_comes_back_and_is_only_headers_on_its_way(attributes: Attributes) -> None:
    sums = {"crc32c": "AAAAAA==", "md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
    told = labels.written(attributes, sums)
    for key, value in told.items():
        assert (key + value).isascii()
        assert (key + value).isprintable()
        assert value == value.strip()
    # Stores may change the case of a header's name.
    assert labels.read({key.title(): value for key, value in told.items()}) == (attributes, sums)


def test_plain_words_lie_open_for_any_tool() -> None:
    told = labels.written(Attributes(content_type="text/plain", metadata={"team": "a", "Größe": "ü"}), {})
    assert told["Content-Type"] == "text/plain"
    assert told["team"] == "a"
    assert set(told) == {"Content-Type", "team", labels.OURS}


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"metadata": 3}', '{"crc32c": 3}'])
def test_what_somebody_else_wrote_under_our_key_counts_as_nothing(text: str) -> None:
    attributes, sums = labels.read({labels.OURS: text, "k": "v"})
    assert attributes.metadata == {"k": "v"}
    assert sums == {}
