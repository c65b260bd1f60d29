"""Which files belong to a program, in real folders and by the real git."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from trainshed.cli.ignored import Patterns
from trainshed.cli.pack import FolderListing, look
from trainshed.cli.trouble import EarlyError
from trainshed.serving.home_folder import make_home


def git(root: Path, *args: str) -> str:
    named = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "protocol.file.allow=always")
    return subprocess.run(
        ["git", "-C", str(root), *named, *args], check=True, capture_output=True, text=True
    ).stdout


def fill(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def packed(
    root: Path, *named: str, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()
) -> list[str]:
    return [path for path, _ in look(str(root), FolderListing(str(root)).paths(include, exclude, *named))]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "r"
    root.mkdir()
    git(root, "init", "-q")
    fill(root, "train.py", "gone.py", "lib/a b.py", "lib/ü.py")
    (root / ".gitignore").write_text("*.bin\n/data/\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


def test_tracked_modified_and_new_files_are_packed_and_ignored_ones_are_not(repository: Path) -> None:
    (repository / "gone.py").unlink()
    (repository / "train.py").write_text("changed")
    fill(repository, "new.py", "big.bin", "data/x", "lib/__pycache__/a.pyc")
    assert packed(repository) == [".gitignore", "lib/a b.py", "lib/ü.py", "new.py", "train.py"]


def test_a_virtual_environment_nobody_ignores_is_left_out(repository: Path) -> None:
    fill(
        repository, "env/pyvenv.cfg", "env/bin/python", "envoy.py", "deep/env/pyvenv.cfg", "deep/env/lib/x.py"
    )
    (repository / "linked").symlink_to("/nowhere/env")
    (repository / "venv").symlink_to(repository.parent / "env")
    fill(repository.parent, "env/pyvenv.cfg")
    found = packed(repository, exclude=("linked",))
    assert "envoy.py" in found
    assert not [path for path in found if "env/" in path or path == "venv"]


def test_a_servers_home_is_left_out_and_a_folder_that_was_there_stays_as_it_was(repository: Path) -> None:
    before = packed(repository)
    make_home(repository / "shed")
    fill(repository, "shed/token", "shed/logs/7/0.0-0.out")
    assert packed(repository) == before
    make_home(repository)
    assert packed(repository) == before


def test_a_folder_inside_is_packed_relative_to_itself(repository: Path) -> None:
    assert packed(repository / "lib") == ["a b.py", "ü.py"]


def test_repositories_inside_are_packed_by_their_own_rules(repository: Path) -> None:
    other = repository.parent / "other"
    other.mkdir()
    git(other, "init", "-q")
    fill(other, "sub.py")
    git(other, "add", ".")
    git(other, "commit", "-qm", "one")
    git(repository, "submodule", "add", "-q", str(other), "module")
    git(repository, "clone", "-q", str(other), "nested")
    fill(repository, "module/new.py", "nested/x.log")
    (repository / "nested" / ".gitignore").write_text("*.log")
    found = packed(repository)
    assert {"module/sub.py", "module/new.py", "nested/sub.py"} <= set(found)
    assert "nested/x.log" not in found
    assert not [path for path in found if ".git" in path.split("/")]
    (repository / ".trainshedignore").write_text("new.py\n/nested/sub.py\n")
    assert not {"module/new.py", "nested/sub.py"} & set(packed(repository))
    assert "module/sub.py" in packed(repository)


def test_a_submodule_that_was_not_checked_out_is_packed_as_the_folder_it_is(
    repository: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    git(other, "init", "-q")
    fill(other, "sub.py")
    git(other, "add", ".")
    git(other, "commit", "-qm", "first")
    git(repository, "submodule", "add", "-q", str(other), "module")
    git(repository, "submodule", "deinit", "-f", "module")
    assert not [path for path in packed(repository) if path.startswith("module/")]
    fill(repository, "module/by_hand.py")
    assert "module/by_hand.py" in packed(repository)


def test_what_is_named_beats_what_is_ignored_and_excluding_beats_including(repository: Path) -> None:
    fill(repository, "w/one.bin", "w/two.bin", "ignored.bin")
    assert "ignored.bin" in packed(repository, "ignored.bin")
    found = packed(repository, include=("w/*.bin",), exclude=("two.*",))
    assert "w/one.bin" in found
    assert "w/two.bin" not in found
    (repository / ".trainshedignore").write_text("lib/\n")
    assert not [path for path in packed(repository) if path.startswith("lib/")]


def test_hooks_of_another_repository_do_not_lead_astray(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git" / "info" / "exclude").write_text("secret\n")
    fill(repository, "secret")
    other = repository.parent / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert "train.py" in packed(repository)
    assert "secret" not in packed(repository)


@pytest.mark.parametrize("broken", ["no git", "no repository"])
def test_without_git_its_ignoring_files_still_count(
    repository: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    fill(repository, "big.bin", "data/x", "lib/deep/.gitignore", "lib/deep/y", "env/pyvenv.cfg", "env/z")
    expected = packed(repository)
    if broken == "no git":
        monkeypatch.setenv("PATH", str(repository.parent))
    else:
        (repository / ".git" / "HEAD").unlink()
    assert packed(repository) == expected


def test_sockets_and_pipes_are_left_out(tmp_path: Path) -> None:
    fill(tmp_path, "a")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
        assert packed(tmp_path) == ["a"]


def test_links_are_kept_and_those_that_lead_out_are_refused_with_what_to_do(tmp_path: Path) -> None:
    root = tmp_path / "r"
    fill(root, "a", "deep/b")
    (root / "to_a").symlink_to("a")
    (root / "deep" / "up").symlink_to("../a")
    (root / "dangling").symlink_to("nothing")
    assert packed(root) == ["a", "dangling", "deep/b", "deep/up", "to_a"]
    (root / "deep" / "out").symlink_to("../../x")
    (root / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(EarlyError) as told:
        packed(root)
    assert [line.split()[0] for line in told.value.details] == ["deep/out", "passwd"]
    assert "leave passwd out with --exclude" in told.value.details[1]
    assert packed(root, exclude=("out", "passwd"))


def test_a_script_named_by_way_of_a_link_is_packed_where_it_lies(tmp_path: Path) -> None:
    fill(tmp_path, "experiments/go.py")
    (tmp_path / "latest").symlink_to("experiments")
    assert packed(tmp_path, "latest/go.py") == ["experiments/go.py", "latest"]


def test_a_name_that_is_not_utf_8_is_refused_and_shown(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("")
    with pytest.raises(EarlyError) as told:
        packed(tmp_path)
    assert "caf" in told.value.details[0]


def test_the_order_is_that_of_the_bytes(tmp_path: Path) -> None:
    fill(tmp_path, "\uffee", "\U0001f600", "a", "B")
    assert packed(tmp_path) == sorted(os.listdir(tmp_path), key=os.fsencode)


LINES = [
    "*.log",
    "!keep.log",
    "/top",
    "dir/",
    "a/**/z",
    "**/deep",
    "x?y",
    "[ab]*.py",
    "b/*.txt",
    "c/**",
    "!c/d",
]
PATHS = [
    "x.log",
    "keep.log",
    "a/keep.log",
    "top",
    "a/top",
    "dir",
    "a/dir/f",
    "a/z",
    "a/b/c/z",
    "q/deep",
    "deep/f",
]
PATHS += ["xzy", "x/y", "a1.py", "c1.py", "b/n.txt", "b/c/n.txt", "c/e", "c/d", "c/d/f", "d/c/x"]


@pytest.mark.parametrize("path", PATHS)
def test_ignoring_is_as_git_itself_ignores(tmp_path: Path, path: str) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("\n".join(LINES))
    fill(tmp_path, path)
    asked = subprocess.run(["git", "-C", str(tmp_path), "check-ignore", "-q", path], check=False)
    listed = path not in git(tmp_path, "ls-files", "-o", "--exclude-standard").splitlines()
    assert listed == (asked.returncode == 0)
    assert Patterns(LINES).holds(path) == listed
