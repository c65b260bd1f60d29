"""What a text with wildcards fits."""

import re
from itertools import product

import pytest

from trainshed.core.query import is_like


@pytest.mark.parametrize("pattern", ["".join(word) for n in range(6) for word in product("ab*", repeat=n)])
def test_a_wildcard_is_any_text(pattern: str) -> None:
    expression = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    texts = ("".join(word) for n in range(6) for word in product("ab", repeat=n))
    for text in (*texts, "a\nb"):
        assert is_like(text, pattern) is bool(expression.fullmatch(text)), (text, pattern)


def test_many_wildcards_take_no_longer_than_few() -> None:
    """A matcher that goes back would take years."""
    assert not is_like("a" * 100_000, "*a" * 50 + "*b*")
    assert not is_like("schema/trainingjob/definition/custom_task_1.0.0.yaml", "*" * 60 + "x")
