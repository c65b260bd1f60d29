"""What a folder's links may make a command send: nothing from outside of it."""

import os
import subprocess
from pathlib import Path

import pytest

from trainshed.cli.pack import FolderListing, look
from trainshed.cli.trouble import EarlyError


def sent(root: Path) -> list[str]:
    return [path for path, _ in look(str(root), FolderListing(str(root)).paths())]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("secret")
    (tmp_path / "code" / "a" / "b").mkdir(parents=True)
    (tmp_path / "code" / "a" / "file").write_text("mine")
    return tmp_path / "code"


def test_a_link_that_leads_out_by_way_of_another_is_refused_with_its_path(folder: Path):
    (folder / "a" / "b" / "top").symlink_to("../..")
    (folder / "out").symlink_to("a/b/top/../secret/file")
    assert (folder / "out").read_text() == "secret"  # though it reads as if it were inside
    with pytest.raises(EarlyError) as caught:
        sent(folder)
    assert [line for line in caught.value.details if "out is a link that leads out of the folder" in line]


def test_an_absolute_link_is_refused_even_where_it_leads_inside(folder: Path):
    (folder / "link").symlink_to(folder / "a" / "file")
    with pytest.raises(EarlyError) as caught:
        sent(folder)
    assert "link is a link that leads out" in caught.value.details[0]


def test_links_inside_to_nothing_and_in_circles_are_sent_as_they_are(folder: Path):
    for name, target in {"x": "a/file", "y": "nothing", "z": "z", "a/up": ".."}.items():
        (folder / name).symlink_to(target)
    assert sent(folder) == ["a/file", "a/up", "x", "y", "z"]


def test_a_tracked_folder_that_became_a_link_is_not_followed(folder: Path):
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    os.remove(folder / "a" / "file")
    (folder / "a" / "b").rmdir()
    (folder / "a").rmdir()
    (folder / "a").symlink_to("../secret")
    with pytest.raises(EarlyError) as caught:
        sent(folder)
    assert "a is a link that leads out" in caught.value.details[0]
    (folder / "a").unlink()
    (folder / "inner").mkdir()
    (folder / "inner" / "file").write_text("mine")
    (folder / "a").symlink_to("inner")
    assert sent(folder) == ["a", "inner/file"]
