"""Places of names: apart from each other, and never outside."""

import posixpath

from hypothesis import given
from hypothesis import strategies as st

from trainshed.buckets.places import name_of, parents, place_of

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


@given(NAMES)
def test_a_place_says_its_name(name: str) -> None:
    assert name_of(place_of(name) or "") == name


@given(NAMES)
def test_a_path_that_is_no_place_has_no_name(path: str) -> None:
    name = name_of(path)
    assert name is None or place_of(name) == path


def test_a_file_that_people_put_there_may_have_no_name() -> None:
    for path in ("100%", "a%2", "%zz", "a\udcff", "a%41"):
        assert name_of(path) is None
