"""What a job names as a path is fetched of buckets that the disk does not have; nothing else is."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainshed.core.bucket import BucketInfo, ObjectDraft
from trainshed.core.view import LaidOutView, View
from trainshed.service import view_source
from trainshed.service.view_source import FetchingViewSource
from trainshed.testing.bucket import MemoryBuckets

NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Still:
    def now(self) -> datetime:
        return NOW


class Empty:
    """A disk on which there is no bucket."""

    async def lay_out(self, view: View, folder: str, *, copies: bool, others: bool = True) -> LaidOutView:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return LaidOutView(buckets=(), missing=tuple(view.named))


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def buckets(**objects: str) -> MemoryBuckets:
    """One bucket for each word, with objects of these names, which they hold."""
    found = MemoryBuckets(Still())
    for name, names in objects.items():
        project = "q" if name == "theirs" else "p"
        info = BucketInfo(name=name, project=project, location="US", created_at=NOW, updated_at=NOW)
        await found.create(info)
        for one in names.split():
            await found.open(name).put(ObjectDraft(name=one), once(one.encode()))
    return found


def a_view(**named: tuple[str, ...]) -> View:
    return View(project="p", named=named, by_path=frozenset(named))


def files(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


async def test_what_is_named_is_fetched_and_no_more(tmp_path: Path):
    there = await buckets(far="in/a in/b/c in.txt other x/../y a//b")
    laid = await FetchingViewSource(Empty(), there).lay_out(
        a_view(far=("in", "in/b"), gone=("",)), str(tmp_path), copies=False
    )
    assert files(tmp_path) == {"far/in/a": "in/a", "far/in/b/c": "in/b/c"}
    assert laid == LaidOutView(buckets=("far",), missing=("gone",))


async def test_of_all_that_is_named_what_cannot_be_a_path_is_counted(tmp_path: Path):
    there = await buckets(far="a b/c ../up a//b a/d")
    laid = await FetchingViewSource(Empty(), there).lay_out(a_view(far=("",)), str(tmp_path), copies=True)
    assert files(tmp_path) in ({"far/a": "a", "far/b/c": "b/c"}, {"far/a/d": "a/d", "far/b/c": "b/c"})
    assert laid.unpathable == 3


async def test_buckets_of_others_and_those_not_said_as_a_path_stay_where_they_are(tmp_path: Path):
    there = await buckets(far="a", theirs="b")
    view = View(project="p", named={"far": ("",), "theirs": ("",)}, by_path=frozenset({"theirs"}))
    laid = await FetchingViewSource(Empty(), there).lay_out(view, str(tmp_path), copies=False)
    assert laid.missing == ("far", "theirs")
    assert files(tmp_path) == {}


@pytest.mark.parametrize("why", ["many", "large"])
async def test_what_is_too_much_is_left_out_and_said(
    tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch
):
    there = await buckets(far="a b c d")
    if why == "large":
        monkeypatch.setattr(view_source, "RESERVE", 1 << 60)
    most = 3 if why == "many" else 100
    laid = await FetchingViewSource(Empty(), there, most).lay_out(
        a_view(far=("",)), str(tmp_path), copies=False
    )
    assert laid.unfetched == ("far",)
    assert files(tmp_path) == {}
    assert (tmp_path / "far").is_dir()
