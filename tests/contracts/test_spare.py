"""Folders used again: only what is ours, cleared, whole; on a real file system."""

import os
from pathlib import Path

import pytest

from trainshed.backends.process.record import BLANK
from trainshed.backends.process.spare_folders import MOST, RUN, SpareFolders, strip


def a_folder(home: Path, name: str = "7") -> Path:
    """What is left of a job of one replica."""
    folder = home / name
    for path in (
        folder,
        folder / "0",
        folder / "0/0-0",
        folder / RUN,
        folder / "0/0-0/work",
        folder / "0/0-0/tmp",
    ):
        path.mkdir(0o700)
    for file, content in (
        ("launch.json", b'{"env": {"SECRET": "s"}}'),
        ("record", b"exit 0 1\n".ljust(len(BLANK))),
    ):
        (folder / RUN / file).write_bytes(content)
        (folder / RUN / file).chmod(0o600)
    return folder


@pytest.fixture
def spares(tmp_path: Path) -> SpareFolders:
    made = SpareFolders(tmp_path / "spare")
    made.open()
    return made


def test_a_folder_that_was_kept_is_put_into_place_without_what_was_in_it(
    tmp_path: Path, spares: SpareFolders
):
    assert spares.keep(str(a_folder(tmp_path)))
    assert not (tmp_path / "7").exists()
    assert spares.take(str(tmp_path / "8" / RUN))
    files = {
        str(p.relative_to(tmp_path / "8" / RUN)): p.read_bytes().strip()
        for p in (tmp_path / "8" / RUN).iterdir()
    }
    assert files == {"launch.json": b"", ".ready": b""}
    assert not spares.take(str(tmp_path / "9" / RUN))


@pytest.mark.parametrize(
    "left", ["0/0-0/work/model.pt", "0/0-0/tmp/x", "0/0-0/x", "0/x", "x", f"{RUN}/term", f"{RUN}/.x"]
)
def test_a_folder_in_which_anything_was_left_is_not_kept(tmp_path: Path, spares: SpareFolders, left: str):
    folder = a_folder(tmp_path)
    (folder / left).write_text("x")
    assert not spares.keep(str(folder))
    assert (folder / left).read_text() == "x"


def test_a_folder_stripped_of_what_its_job_had_is_kept(tmp_path: Path, spares: SpareFolders):
    folder = a_folder(tmp_path)
    (folder / "0/0-0/work/deep").mkdir()
    for left in ("0/0-0/work/deep/train.py", "0/0-0/work/model.pt", "0/0-0/tmp/x", "0/0-0/work.boot"):
        (folder / left).write_text("x")
    assert strip(str(folder))
    assert spares.keep(str(folder))
    assert spares.take(str(tmp_path / "8" / RUN))
    assert sorted(str(p.relative_to(tmp_path / "8/0/0-0")) for p in (tmp_path / "8/0/0-0").iterdir()) == [
        "0",
        "tmp",
        "work",
    ]
    assert [*(tmp_path / "8/0/0-0/work").iterdir(), *(tmp_path / "8/0/0-0/tmp").iterdir()] == []


def test_stripping_follows_no_link(tmp_path: Path):
    folder = a_folder(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("x")
    (folder / "0/0-0/tmp").rmdir()
    (folder / "0/0-0/tmp").symlink_to(elsewhere)
    assert not strip(str(folder))
    assert (elsewhere / "mine").exists()


@pytest.mark.parametrize("changed", ["", "0", "0/0-0", "0/0-0/work", "0/0-0/tmp", RUN, f"{RUN}/record"])
def test_a_folder_whose_rights_were_changed_is_not_kept(tmp_path: Path, spares: SpareFolders, changed: str):
    folder = a_folder(tmp_path)
    (folder / changed).chmod(0o777)
    assert not spares.keep(str(folder))


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path, spares: SpareFolders):
    folder = a_folder(tmp_path)
    (folder / "0/0-0/work").rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    (folder / "0/0-0/work").symlink_to(elsewhere)
    assert not spares.keep(str(folder))


def test_a_file_that_has_another_name_too_is_not_written_over(tmp_path: Path, spares: SpareFolders):
    folder = a_folder(tmp_path)
    os.link(folder / RUN / "launch.json", tmp_path / "mine")
    assert not spares.keep(str(folder))
    assert (tmp_path / "mine").read_bytes() == b'{"env": {"SECRET": "s"}}'


def test_a_place_that_is_taken_stays_as_it_is(tmp_path: Path, spares: SpareFolders):
    assert spares.keep(str(a_folder(tmp_path)))
    taken = a_folder(tmp_path, "8")
    assert not spares.take(str(taken / RUN))
    assert (taken / RUN / "record").exists()


def test_no_more_than_a_few_are_kept(tmp_path: Path, spares: SpareFolders):
    kept = [spares.keep(str(a_folder(tmp_path, str(n)))) for n in range(MOST + 1)]
    assert kept == [True] * MOST + [False]


def test_a_new_server_starts_without(tmp_path: Path, spares: SpareFolders):
    spares.keep(str(a_folder(tmp_path)))
    again = SpareFolders(tmp_path / "spare")
    again.open()
    assert not again.take(str(tmp_path / "8" / RUN))
    assert list((tmp_path / "spare").iterdir()) == []


def test_only_the_first_run_of_a_first_replica_gets_one(tmp_path: Path, spares: SpareFolders):
    assert spares.keep(str(a_folder(tmp_path)))
    assert not spares.take(str(tmp_path / "8/1/0-0/0"))
    assert not spares.take(str(tmp_path / "8/0/1-0/0"))
    assert spares.take(str(tmp_path / "8" / RUN))
