"""The patterns alone; what conditions mean is proven by the store's contract, on real databases."""

import pytest

from trainshed.store.conditions import glob_pattern, like_pattern


@pytest.mark.parametrize(
    ("pattern", "glob", "like"),
    [
        ("train*", "train*", "train%"),
        ("100%", "100%", "100\\%"),
        ("a_b", "a_b", "a\\_b"),
        ("a\\*", "a\\*", "a\\\\%"),
        ("[x]?", "[[]x][?]", "[x]?"),
    ],
)
def test_only_the_star_is_a_wildcard(pattern: str, glob: str, like: str) -> None:
    assert glob_pattern(pattern) == glob
    assert like_pattern(pattern) == like
