"""What programs wrote into the machine's own /gcs becomes part of their job's view."""

import os
import time
from pathlib import Path

import pytest

from trainshed.backends.process import astray


@pytest.fixture
def gcs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "gcs"
    place.mkdir()
    monkeypatch.setattr(astray, "ROOT", str(place))
    return place


@pytest.fixture
def view(tmp_path: Path) -> Path:
    view = tmp_path / "0.0"
    (view / "plain").mkdir(parents=True)
    return view


def marked(view: Path) -> None:
    astray.mark(view)
    os.utime(view / "astray", (1, 1))  # long ago: what follows is newer, whatever the clock's steps are


def test_what_is_new_in_the_machines_gcs_is_added_and_stays_where_it_is(gcs: Path, view: Path):
    marked(view)
    (gcs / "b/deep").mkdir(parents=True)
    (gcs / "b/deep/model").write_text("1")
    (gcs / "b/link").symlink_to("/etc/passwd")
    astray.rescue(view)
    assert [path.name for path in (view / "plain/b").rglob("*")] == ["deep", "model"]
    (gcs / "b/deep/model").unlink()
    (gcs / "b/deep/model").write_text("22")
    os.utime(gcs / "b/deep/model", (2e9, 2e9))
    astray.rescue(view)
    assert (view / "plain/b/deep/model").read_text() == "22"
    assert (gcs / "b/deep/model").read_text() == "22"


def test_a_file_replaced_by_an_older_one_is_replaced(gcs: Path, view: Path):
    marked(view)
    (gcs / "b").mkdir()
    (gcs / "b/model").write_text("new")
    astray.rescue(view)
    (gcs / "b/model").unlink()
    time.sleep(0.02)  # a step of the clock by which files are marked
    (gcs / "b/model").write_text("restored")
    os.utime(gcs / "b/model", (1, 1))
    astray.rescue(view)
    assert (view / "plain/b/model").read_text() == "restored"


def test_what_was_there_before_is_left_alone(gcs: Path, view: Path):
    (gcs / "owners").write_text("1")
    astray.mark(view)
    os.utime(view / "astray", (2e9, 2e9))
    astray.mark(view)
    astray.rescue(view)
    assert not list((view / "plain").iterdir())


def test_a_view_that_is_mounted_takes_nothing_from_the_machine(gcs: Path, view: Path):
    (gcs / "x").write_text("1")
    astray.rescue(view)
    assert not list((view / "plain").iterdir())
