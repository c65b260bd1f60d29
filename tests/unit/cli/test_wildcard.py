"""Wildcards in places of buckets: which objects and folders they stand for."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainshed.cli.failure import CommandFailed
from trainshed.cli.wildcard import Named, is_wild, meant
from trainshed.client.storage import StorageClient

NAMES = ("a.csv", "b.csv", "notes", "dir/a.csv", "dir/b.txt", "dir/sub/a.csv", "other/a.csv", "other/x/y")


class FakeBucket:
    """A bucket that lists as the server does, and counts how often it was asked for everything below."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.deep: list[str] = []

    def objects(self, bucket: str, prefix: str = "", delimiter: str = "") -> Iterator[dict[str, Any]]:
        assert bucket == "b"
        self.deep += [] if delimiter else [prefix]
        found = [name for name in sorted(self.names) if name.startswith(prefix)]
        cut = {name: name[len(prefix) :].partition("/") for name in found}
        folders = [prefix + parts[0] + "/" for parts in cut.values() if delimiter and parts[1]]
        yield from ({"prefix": one} for one in dict.fromkeys(folders))
        yield from ({"name": name, "size": "1"} for name in found if not (delimiter and cut[name][1]))


def look(*patterns: str, names: Sequence[str] = NAMES, folders: bool = False) -> list[str]:
    bucket = cast(StorageClient, FakeBucket(names))
    return sorted(
        one.place.removeprefix("gs://b/")
        for one in meant(bucket, [f"gs://b/{pattern}" for pattern in patterns], folders=folders)
    )


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.csv", ["a.csv", "b.csv"]),
        ("[ac].csv", ["a.csv"]),
        ("[!a].csv", ["b.csv"]),
        ("[^a].csv", ["b.csv"]),
        ("[a-b].csv", ["a.csv", "b.csv"]),
        ("?.csv", ["a.csv", "b.csv"]),
        ("*", ["a.csv", "b.csv", "notes"]),
        ("dir/*", ["dir/a.csv", "dir/b.txt"]),
        ("*/a.csv", ["dir/a.csv", "other/a.csv"]),
        ("*/*/*", ["dir/sub/a.csv", "other/x/y"]),
        ("**.csv", ["a.csv", "b.csv", "dir/a.csv", "dir/sub/a.csv", "other/a.csv"]),
        ("**/a.csv", ["a.csv", "dir/a.csv", "dir/sub/a.csv", "other/a.csv"]),
        ("dir/**", ["dir/a.csv", "dir/b.txt", "dir/sub/a.csv"]),
        ("d**a.csv", ["dir/a.csv", "dir/sub/a.csv"]),
        ("*/**/y", ["other/x/y"]),
        ("di[q-s]/?.txt", ["dir/b.txt"]),
    ],
)
def test_a_star_stays_between_slashes_and_two_do_not(pattern: str, found: list[str]) -> None:
    assert look(pattern) == found


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.csv", "b.csv", "dir/", "notes", "other/"]),
        ("*/", ["dir/", "other/"]),
        ("*/[sx]*", ["dir/sub/", "other/x/"]),
        ("dir/**", ["dir/a.csv", "dir/b.txt", "dir/sub/a.csv"]),
    ],
)
def test_folders_match_where_they_are_asked_for(pattern: str, found: list[str]) -> None:
    assert look(pattern, folders=True) == found


@pytest.mark.parametrize(
    "pattern", ["*.parquet", "?", "dir?a.csv", "dir[!x]a.csv", "[z-a].csv", "no/**", "*/nothing", "n*s/"]
)
def test_a_wildcard_that_nothing_matches_is_told_by_its_name(pattern: str) -> None:
    for folders in (True, False):
        with pytest.raises(CommandFailed) as error:
            look("a.csv", pattern, folders=folders)
        assert (error.value.message, error.value.exit_code) == (f"nothing matches gs://b/{pattern}", 1)


def test_folders_that_are_not_asked_for_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert look("dir/*") == ["dir/a.csv", "dir/b.txt"]
    assert capsys.readouterr().err == "skipped gs://b/dir/sub/: a folder\n"
    with pytest.raises(CommandFailed, match="only folders match gs://b/oth"):
        look("oth*")


def test_what_has_the_name_to_the_letter_is_meant_first() -> None:
    names = ("a*", "ab", "a?/x", "ac/x")
    assert look("a*", names=names) == ["a*"]
    assert look("a?", names=names) == ["a*", "ab"]
    assert look("a?", names=names, folders=True) == ["a?"]
    assert look("a?/*", names=names) == ["a?/x", "ac/x"]


def test_a_place_without_wildcards_is_not_looked_for() -> None:
    for place in ("gs://b/none", "gs://b", "/local/*.csv", "gs://b/a[", "gs://b/[]", "gs://b/a[b/c]"):
        assert not is_wild(place)
        assert meant(cast(StorageClient, None), [place], folders=True) == [Named(place)]


def test_nothing_is_listed_that_cannot_match() -> None:
    bucket = FakeBucket(NAMES)
    meant(cast(StorageClient, bucket), ["gs://b/*", "gs://b/dir/*.csv", "gs://b/*/a.csv"], folders=True)
    assert bucket.deep == []
    meant(cast(StorageClient, bucket), ["gs://b/di*/su**"], folders=True)
    assert bucket.deep == ["dir/su"]


def test_a_mark_for_a_folder_is_not_in_it() -> None:
    assert look("dir/*", names=("dir/", "dir/a")) == ["dir/a"]
    assert look("**", names=("dir/", "dir/a")) == ["dir/", "dir/a"]


@given(st.text("ab/*?[]!^-\\.{}()|&~", min_size=1, max_size=12), st.text("ab/*?[]-", min_size=1, max_size=8))
@settings(max_examples=200)
def test_any_text_is_a_pattern_and_matches_itself(pattern: str, other: str) -> None:
    assert pattern in look(pattern, names=(pattern,))
    try:
        found = look(pattern, names=(other,), folders=True)
    except CommandFailed:
        return
    assert is_wild(f"gs://b/{pattern}") is False or all(
        other == one or other.startswith(one.rstrip("/") + "/") for one in found
    )
