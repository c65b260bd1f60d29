"""A folder as the context of a build: what .dockerignore leaves out, and the tar that is sent."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from trainshed.cli.context import PIECE, Context, Ignored
from trainshed.cli.failure import CommandFailed, Misuse


@pytest.mark.parametrize(
    ("lines", "out", "kept"),
    [
        (["data"], ["data", "data/a", "data/b/c"], ["datas", "x/data"]),
        (["*.pyc"], ["a.pyc"], ["x/a.pyc"]),
        (["**/*.pyc"], ["a.pyc", "x/a.pyc", "x/y/a.pyc"], ["a.py"]),
        (["*/temp*"], ["x/temp", "x/temporary.txt"], ["temp", "x/y/temp"]),
        (["/build/", "./dist"], ["build/a", "dist/b"], ["x/build"]),
        (["temp?"], ["tempa"], ["temp", "tempab"]),
        (["[a-c].txt"], ["b.txt"], ["d.txt"]),
        (["*", "!src", "src/*.log"], ["a", "src/x.log"], ["src/a", "src/b/c"]),
        (["docs/**", "!docs/keep.md"], ["docs/a", "docs/b/c"], ["docs/keep.md", "docs"]),
        (["# a comment", "", "  spaced  "], ["spaced"], ["# a comment", "a"]),
        (["a.b"], ["a.b"], ["axb"]),
        (["secret\\*"], ["secret*"], ["secrets"]),
        (["../x", "."], [], ["x", "a"]),
    ],
)
def test_lines_of_dockerignore_mean_what_docker_has_them_mean(
    lines: list[str], out: list[str], kept: list[str]
) -> None:
    ignored = Ignored(lines)
    assert [path for path in out if not ignored.holds(path)] == []
    assert [path for path in kept if ignored.holds(path)] == []


def folder(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def members(context: Context) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(b"".join(context.tar()))) as tar:
        return {member.name: member for member in tar}


def test_a_folder_becomes_a_tar_with_modes_links_and_empty_folders(tmp_path: Path) -> None:
    folder(tmp_path, Dockerfile="FROM x", run_dot_sh="true", sub__a="a" * 600)
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("sub/a")
    os.mkfifo(tmp_path / "pipe")
    found = members(Context(tmp_path))
    assert sorted(found) == ["Dockerfile", "empty", "link", "run.sh", "sub", "sub/a"]
    assert found["run.sh"].mode == 0o755 and found["link"].linkname == "sub/a" and found["empty"].isdir()
    assert found["sub/a"].size == 600 and {one.uid for one in found.values()} == {0}


def test_long_and_foreign_names_come_through(tmp_path: Path) -> None:
    name = "ä" * 60 + "/" + "b" * 120
    folder(tmp_path, Dockerfile="FROM x")
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("here")
    assert name in members(Context(tmp_path))


def test_the_dockerfile_is_sent_even_where_it_is_left_out(tmp_path: Path) -> None:
    folder(tmp_path, sub__Dockerfile="FROM x", _dot_dockerignore="*\n!src\n", src__a="a", data="d")
    context = Context(tmp_path, str(tmp_path / "sub/Dockerfile"))
    assert context.dockerfile == "sub/Dockerfile"
    assert sorted(members(context)) == [".dockerignore", "src", "src/a", "sub/Dockerfile"]


def test_a_dockerfile_may_lie_elsewhere_and_have_an_ignore_file_of_its_own(tmp_path: Path) -> None:
    folder(tmp_path, there__a="a", there__b="b", there___dot_dockerignore="a")
    folder(tmp_path, small_dot_Dockerfile="FROM y", small_dot_Dockerfile_dot_dockerignore="b")
    context = Context(tmp_path / "there", str(tmp_path / "small.Dockerfile"))
    found = members(context)
    assert context.dockerfile in found and "a" in found and "b" not in found


def test_what_is_missing_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no folder"):
        Context(tmp_path / "none")
    with pytest.raises(Misuse, match="there is no"):
        Context(tmp_path)


def test_a_file_that_becomes_shorter_while_it_is_sent_ends_the_build(tmp_path: Path) -> None:
    folder(tmp_path, Dockerfile="FROM x", a="a" * 3 * PIECE)
    pieces = Context(tmp_path).tar()
    with pytest.raises(CommandFailed, match="became shorter"):
        for piece in pieces:
            if len(piece) == PIECE:
                os.truncate(tmp_path / "a", PIECE)
