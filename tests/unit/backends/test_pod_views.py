"""What a pod did to its view, and how much of the buckets a pod is brought: on folders, without a pod."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from trainshed.backends.cluster.file_taker import FileTaker
from trainshed.backends.cluster.local_copy import LocalCopy
from trainshed.backends.cluster.pod_files import PodEntry
from trainshed.backends.cluster.view_changes import ViewChanges
from trainshed.backends.cluster.views import BoundedSource
from trainshed.core.view import LaidOutView, View


@pytest.fixture
def copy(tmp_path: Path) -> LocalCopy:
    (tmp_path / "plain/b").mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / "plain/b" / name).write_text(name)
    (tmp_path / "baseline.json").write_text(json.dumps({"b/one": "x", "b/two": "x"}))
    return LocalCopy(str(tmp_path / "plain"), "gcs")


def as_brought(copy: LocalCopy) -> list[PodEntry]:
    return [replace(item.entry, stamp=(at + 1, 5, 5)) for at, item in enumerate(copy.all())]


def changed(entry: PodEntry) -> PodEntry:
    return replace(entry, stamp=(entry.stamp[0], 6, 6), changed_at=entry.changed_at + 5 * 10**9)


def by_path(entries: list[PodEntry]) -> dict[str, PodEntry]:
    return {entry.path: entry for entry in entries}


def test_only_what_changed_is_fetched_and_what_was_removed_goes(copy: LocalCopy):
    changes = ViewChanges(copy, is_shared=False)
    brought = by_path(as_brought(copy))
    changes.learn(brought.values())
    assert changes.look(brought.values(), set()).fetch == []
    now = [changed(brought["gcs/b/one"]), brought["gcs/b"], PodEntry(path="gcs/b/new", kind="f", size=1)]
    found = changes.look(now, set())
    assert sorted(found.fetch) == ["gcs/b/new", "gcs/b/one"]
    assert found.done == {"gcs/b/two"} and not Path(copy.top, "b/two").exists()


def test_a_new_server_knows_files_by_size_and_time_and_those_that_are_missing_as_removed(copy: LocalCopy):
    entries = by_path(as_brought(copy))
    found = ViewChanges(copy, is_shared=False).look([entries["gcs/b"], entries["gcs/b/one"]], set())
    assert found.fetch == [] and found.done == {"gcs/b/two"}


def test_a_new_server_brings_a_pod_what_another_one_wrote_and_brings_back_nothing_that_was_removed(
    copy: LocalCopy,
):
    Path(copy.top, "b/of another").write_text("1")
    entries = by_path(as_brought(copy))
    changes = ViewChanges(copy, is_shared=True)
    found = changes.look([entries["gcs/b"], entries["gcs/b/one"]], set())
    assert found.missed == {"gcs/b/of another"} and found.done == {"gcs/b/two"}
    brought, removed = changes.wanted({"gcs/b/of another", "gcs/b/two"})
    assert [item.entry.path for item in brought] == ["gcs/b/of another"] and removed == ["gcs/b/two"]


def test_of_two_changes_of_a_file_the_newer_one_counts(copy: LocalCopy):
    changes = ViewChanges(copy, is_shared=True)
    brought = by_path(as_brought(copy))
    changes.learn(brought.values())
    mine = changed(brought["gcs/b/one"])
    path = Path(copy.top, "b/one")
    path.write_text("newer")
    os.utime(path, ns=(0, mine.changed_at + 1))
    assert changes.look({**brought, "gcs/b/one": mine}.values(), {"gcs/b/one"}).fetch == []
    os.utime(path, ns=(0, mine.changed_at - 1))
    assert changes.look({**brought, "gcs/b/one": mine}.values(), {"gcs/b/one"}).fetch == ["gcs/b/one"]


def test_a_link_of_a_program_leads_nothing_out_of_the_copy(copy: LocalCopy, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "draft").write_text("bad")
    copy.make(PodEntry(path="gcs/out", kind="l", target=str(tmp_path / "outside")))
    with pytest.raises(OSError, match="out"):
        copy.put(str(tmp_path / "draft"), PodEntry(path="gcs/out/x", kind="f"))
    copy.remove("gcs/out/x")
    assert copy.find("gcs/out/x") is None
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_file_that_changed_while_it_was_read_is_left_out_and_one_that_grew_is_taken(tmp_path: Path):
    put: dict[str, str] = {}

    def keep(draft: str, entry: PodEntry) -> None:
        put[entry.path] = Path(draft).read_text()

    taker = FileTaker(str(tmp_path), keep)
    before = PodEntry(path="gcs/torn", kind="f", size=2, stamp=(1, 1, 1))
    grown = PodEntry(path="gcs/grown", kind="f", size=2, stamp=(2, 1, 1))
    taker.take([before, b"ab", replace(before, stamp=(1, 2, 2))])
    assert taker.is_torn
    taker.take([grown, b"a"])
    taker.take([b"b", replace(grown, size=5, stamp=(2, 2, 2))])
    assert put == {"gcs/grown": "ab"} and taker.taken == [grown]


class Folders:
    """Lays out what it is told."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes

    async def lay_out(self, view: View, folder: str, *, copies: bool, others: bool = True) -> LaidOutView:
        for name, size in self._sizes.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(size))
        return LaidOutView(buckets=tuple(dict.fromkeys(name.partition("/")[0] for name in self._sizes)))


async def test_all_that_a_job_names_is_brought_and_of_the_rest_only_a_little(tmp_path: Path):
    sizes = {"named/in/a": 50, "named/other": 8, "small/x": 3, "large/x": 60}
    view = View(project="p", named={"named": ("in",)})
    source = BoundedSource(Folders(sizes), most=12)
    laid = await source.lay_out(view, str(tmp_path), copies=False)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"named/in/a", "named/other", "small/x"}
    assert laid.partial == ("large",) and (tmp_path / "large").is_dir()
