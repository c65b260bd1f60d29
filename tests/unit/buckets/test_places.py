"""Places of names: apart from each other, and never outside."""

import posixpath

from hypothesis import given
from hypothesis import strategies as st

from trainshed.buckets.places import parents, place_of

NAMES = st.text(st.sampled_from("ab./%2E\0\x7fü大"), min_size=1, max_size=30)


def test_a_plain_name_is_its_own_place() -> None:
    assert place_of("models/v1/größe: 大.pt") == "models/v1/größe: 大.pt"
    assert place_of("x" * 256) is None
    assert parents("a/b/c") == ["a/b", "a"]


@given(NAMES)
def test_a_place_is_a_path_below_its_folder_whatever_the_name(name: str) -> None:
    place = place_of(name)
    assert place is not None
    assert posixpath.normpath(f"/srv/{place}") == f"/srv/{place}"
    assert "\0" not in place


@given(NAMES, NAMES)
def test_two_names_never_share_a_place(one: str, other: str) -> None:
    assert (place_of(one) == place_of(other)) == (one == other)
