"""Wildcards of `trainshed storage`, against a live server: each command, on what matches and on nothing."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.acceptance.test_storage import run, tree, tried
from tests.live import LiveServer

NAMES = ("a.csv", "b.csv", "notes", "dir/a.csv", "dir/b.txt", "dir/sub/c.csv", "star/we*", "star/well")


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    with LiveServer() as found:
        yield found


@pytest.fixture
def server(live: LiveServer) -> LiveServer:
    """With a bucket whose objects hold their own names."""
    if "gs://wild/" in run(live, "ls").split():
        run(live, "rm", "-r", "gs://wild")
    run(live, "buckets", "create", "gs://wild")
    for name in NAMES:
        path = f"/upload/storage/v1/b/wild/o?uploadType=media&name={quote(name, safe='')}"
        assert live.request("POST", path, name.encode()).status == 200
    return live


def left(server: LiveServer) -> set[str]:
    return {line.removeprefix("gs://wild/") for line in run(server, "ls", "-r", "gs://wild").splitlines()}


def test_ls_tells_objects_and_then_what_is_in_folders_that_match(server: LiveServer) -> None:
    assert run(server, "ls", "gs://wild/*.csv").split() == ["gs://wild/a.csv", "gs://wild/b.csv"]
    assert run(server, "ls", "gs://wild/[bn]*") == "gs://wild/b.csv\ngs://wild/notes\n"
    assert run(server, "ls", "gs://wild/*") == (
        "gs://wild/a.csv\ngs://wild/b.csv\ngs://wild/notes\n"
        "\ngs://wild/dir/:\ngs://wild/dir/sub/\ngs://wild/dir/a.csv\ngs://wild/dir/b.txt\n"
        "\ngs://wild/star/:\ngs://wild/star/we*\ngs://wild/star/well\n"
    )
    assert run(server, "ls", "-r", "gs://wild/d?r").split() == [
        "gs://wild/dir/a.csv",
        "gs://wild/dir/b.txt",
        "gs://wild/dir/sub/c.csv",
    ]
    assert '"dir/sub/c.csv"' in run(server, "ls", "--json", "gs://wild/**/c.csv")
    assert " 5  2" in run(server, "ls", "-l", "gs://wild/a*")


def test_cat_prints_all_that_match(server: LiveServer) -> None:
    assert run(server, "cat", "gs://wild/?.csv") == "a.csvb.csv"
    assert run(server, "cp", "gs://wild/**.csv", "-") == "a.csvb.csvdir/a.csvdir/sub/c.csv"


def test_cp_fetches_what_matches_and_folders_with_r(server: LiveServer, tmp_path: Path) -> None:
    run(server, "cp", "gs://wild/*.csv", str(tmp_path / "one"))
    assert tree(tmp_path / "one") == {"a.csv": b"a.csv", "b.csv": b"b.csv"}
    run(server, "cp", "-r", "gs://wild/[dn]*", str(tmp_path / "two"))
    found = {name for name in NAMES if name.startswith(("dir", "notes"))}
    assert tree(tmp_path / "two") == {name: name.encode() for name in found}
    run(server, "cp", "gs://wild/dir/**/c.csv", "gs://wild/n?tes", "gs://wild/into")
    assert {"into/c.csv", "into/notes"} <= left(server)
    told = run(server, "cp", "gs://wild/**.csv", str(tmp_path / "three"), fails=True)
    assert "the same name" in told  # a.csv is there twice, and no folder tells them apart
    assert not (tmp_path / "three").exists()


def test_mv_takes_all_that_match_from_where_they_were(server: LiveServer) -> None:
    run(server, "mv", "gs://wild/*.csv", "gs://wild/dir/*.txt", "gs://wild/moved/")
    moved = {"moved/a.csv", "moved/b.csv", "moved/b.txt"}
    assert left(server) == {"notes", "dir/a.csv", "dir/sub/c.csv", "star/we*", "star/well"} | moved


def test_rm_takes_objects_and_with_r_folders(server: LiveServer) -> None:
    done = tried(server, "rm", "gs://wild/*", "gs://wild/a*")
    assert (done.returncode, done.stderr.decode()) == (
        0,
        "skipped gs://wild/dir/: a folder\nskipped gs://wild/star/: a folder\n",
    )
    assert left(server) == set(NAMES) - {"a.csv", "b.csv", "notes"}
    run(server, "rm", "-r", "gs://wild/d*")
    assert left(server) == {"star/we*", "star/well"}
    run(server, "rm", "gs://wild/**")
    assert run(server, "ls", "gs://wild") == ""


def test_an_object_whose_name_holds_a_star_can_be_named(server: LiveServer, tmp_path: Path) -> None:
    assert run(server, "cat", "gs://wild/star/we*") == "star/we*"
    run(server, "cp", "gs://wild/star/we*", str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "star/we*"
    run(server, "rm", "gs://wild/star/we*")
    assert left(server) == set(NAMES) - {"star/we*"}


@pytest.mark.parametrize("verb", ["ls", "cat", "rm", "cp", "mv", "cp -r", "rm -r"])
def test_a_wildcard_that_matches_nothing_is_an_error_and_nothing_is_done(
    server: LiveServer, tmp_path: Path, verb: str
) -> None:
    more = (str(tmp_path / "into"),) if verb.startswith(("cp", "mv")) else ()
    first = () if verb == "ls" else ("gs://wild/*.csv",)
    done = tried(server, *verb.split(), *first, "gs://wild/*.parquet", *more)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == "error: nothing matches gs://wild/*.parquet\n"
    assert left(server) == set(NAMES)
    assert not (tmp_path / "into").exists()
