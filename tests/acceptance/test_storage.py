"""`trainshed storage` as a person uses it, against a live server."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer() as live:
        yield live


def run(server: LiveServer, *args: str, fails: bool = False) -> str:
    done = tried(server, *args)
    assert (done.returncode != 0) == fails, (args, done.stdout, done.stderr)
    told = done.stderr if fails else done.stdout
    return told.decode()


def tried(server: LiveServer, *args: str | bytes, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRAINSHED_", "CLOUDSDK_", "GOOGLE_"))}
    return subprocess.run(
        [sys.executable, "-c", "from trainshed.cli.main import main; main()", "storage", *args],
        env=env | {"TRAINSHED_HOME": str(server.home), "TRAINSHED_URL": server.url},
        input=stdin,
        capture_output=True,
        check=False,
    )


def test_files_and_folders_go_there_and_back(server: LiveServer, tmp_path: Path) -> None:
    folder, back = tmp_path / "out", tmp_path / "back"
    big = os.urandom(5 << 20)
    (folder / "deep/er").mkdir(parents=True)
    (folder / "model.pt").write_bytes(big)
    (folder / "deep/er/größe: 大.txt").write_text("hello")
    (folder / "empty").touch()
    run(server, "buckets", "create", "gs://shelf")
    run(server, "cp", "-r", str(folder), "gs://shelf/run-1")
    run(server, "cp", str(folder / "model.pt"), "gs://shelf")
    assert "gs://shelf/" in run(server, "ls").splitlines()
    assert sorted(run(server, "ls", "gs://shelf").splitlines()) == [
        "gs://shelf/model.pt",
        "gs://shelf/run-1/",
    ]
    assert run(server, "ls", "-r", "gs://shelf/run-1").splitlines() == [
        "gs://shelf/run-1/deep/er/größe: 大.txt",
        "gs://shelf/run-1/empty",
        "gs://shelf/run-1/model.pt",
    ]
    assert str(len(big)) in run(server, "ls", "-l", "gs://shelf/model.pt")
    assert run(server, "cat", "gs://shelf/run-1/deep/er/größe: 大.txt") == "hello"
    run(server, "cp", "-r", "gs://shelf/run-1", str(back))
    assert (back / "model.pt").read_bytes() == big
    assert (back / "deep/er/größe: 大.txt").read_text() == "hello"
    assert (back / "empty").read_bytes() == b""
    assert not list(back.rglob("*.part"))
    run(server, "cp", "gs://shelf/model.pt", "gs://shelf/copy.pt")
    run(server, "rm", "gs://shelf/model.pt")
    assert "not empty" in run(server, "buckets", "delete", "gs://shelf", fails=True)
    run(server, "rm", "-r", "gs://shelf")
    assert "gs://shelf/" not in run(server, "ls").splitlines()


def test_names_from_a_bucket_do_not_lead_out_of_the_folder(server: LiveServer, tmp_path: Path) -> None:
    run(server, "buckets", "create", "gs://hostile")
    path = "/upload/storage/v1/b/hostile/o?uploadType=media&name=a%2F..%2F..%2Fescaped"
    assert server.request("POST", path, b"x").status == 200
    (tmp_path / "into").mkdir()
    told = run(server, "cp", "-r", "gs://hostile/a", str(tmp_path / "into/here"), fails=True)
    assert "no safe place" in told
    assert not (tmp_path / "escaped").exists()
    run(server, "cp", "gs://hostile/a/../../escaped", str(tmp_path / "alone"))
    assert (tmp_path / "alone").read_bytes() == b"x"


def test_what_is_wrong_is_said(server: LiveServer, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "there is no file" in run(server, "cp", str(tmp_path / "none"), "gs://x/y", fails=True)
    assert "copy it with -r" in run(server, "cp", str(tmp_path), "gs://x/y", fails=True)
    assert "does not exist" in run(server, "cp", str(tmp_path / "file"), "gs://no-such-bucket/y", fails=True)
    assert "gs://BUCKET/NAME" in run(server, "cat", "bucket/name", fails=True)
    assert "must be in a bucket" in run(server, "cp", str(tmp_path / "file"), str(tmp_path / "b"), fails=True)
    assert "Invalid bucket name" in run(server, "buckets", "create", "gs://No", fails=True)


def test_buckets_are_listed_and_described(server: LiveServer) -> None:
    run(server, "buckets", "create", "gs://described")
    assert "gs://described/" in run(server, "buckets", "list").splitlines()
    assert run(server, "buckets", "list", "--json") == run(server, "ls", "--json")
    assert json.loads(run(server, "buckets", "describe", "gs://described"))["name"] == "described"
    assert "does not exist" in run(server, "buckets", "describe", "gs://no-such-bucket", fails=True)
    assert "is not a bucket" in run(server, "buckets", "describe", "gs://described/x", fails=True)


# ---- rsync and mv


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_rsync_copies_what_differs_and_removes_only_where_told(server: LiveServer, tmp_path: Path) -> None:
    folder, back = tmp_path / "data", tmp_path / "back"
    (folder / "deep").mkdir(parents=True)
    for name, text in (("a", "1"), ("b", "2"), ("deep/c", "3")):
        (folder / name).write_text(text)
    run(server, "buckets", "create", "gs://synced")
    run(server, "rsync", str(folder), "gs://synced/x")
    assert run(server, "ls", "-r", "gs://synced").split() == ["gs://synced/x/a", "gs://synced/x/b"]
    run(server, "rsync", "-r", str(folder), "gs://synced/x")
    (folder / "a").write_text("9")  # of the same size
    (folder / "b").unlink()
    told = run(server, "rsync", "-r", "-d", "--dry-run", str(folder), "gs://synced/x")
    assert told.splitlines() == [
        f"Would copy {folder}/a to gs://synced/x/a",
        "Would remove gs://synced/x/b",
    ]
    assert run(server, "cat", "gs://synced/x/a") == "1"
    made = json.loads(run(server, "rsync", "-r", "--json", str(folder), "gs://synced/x"))
    assert [one["target"] for one in made["copies"]] == ["gs://synced/x/a"]
    assert made["removals"] == []
    assert run(server, "cat", "gs://synced/x/a", "gs://synced/x/b") == "92"
    run(server, "rsync", "-r", "-d", str(folder), "gs://synced/x")
    run(server, "rsync", "-r", "gs://synced/x", "gs://synced/y")
    (back / "old").mkdir(parents=True)
    (back / "old/file").write_text("gone")
    run(server, "rsync", "-r", "-d", "gs://synced/y", str(back))
    assert tree(back) == tree(folder) == {"a": b"9", "deep/c": b"3"}
    for place in ("gs://synced/x", "gs://synced/y", str(back)):
        assert run(server, "rsync", "-r", "-d", "-n", str(folder), place, fails=place == str(back)) in (
            "",
            "error: one of SOURCE and TARGET must be in a bucket: gs://… or s3://…\n",
        )


def test_rsync_of_a_source_that_is_not_there_removes_nothing(server: LiveServer, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("kept")
    assert "there is no folder" in run(server, "rsync", "-d", str(tmp_path / "no"), "gs://synced", fails=True)
    told = run(server, "rsync", "-r", "-d", "gs://no-such-bucket", str(tmp_path / "kept"), fails=True)
    assert "does not exist" in told
    assert tree(tmp_path) == {"kept/file": b"kept"}


def test_rsync_of_a_source_that_is_empty_removes_nothing(server: LiveServer, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("kept")
    (tmp_path / "empty").mkdir()
    run(server, "buckets", "create", "gs://wary")
    run(server, "cp", str(tmp_path / "kept/file"), "gs://wary/there/file")
    for source, target in (
        ("gs://wary/typo", str(tmp_path / "kept")),
        ("gs://wary/typo", "gs://wary/there"),
        (str(tmp_path / "empty"), "gs://wary/there"),
    ):
        told = run(server, "rsync", "-r", "-d", source, target, fails=True)
        assert f"there is nothing at {source}" in told
        assert ("trainshed storage rm -r gs://wary/there" in told) == target.startswith("gs://")
    assert tree(tmp_path) == {"kept/file": b"kept"}
    assert run(server, "ls", "-r", "gs://wary").split() == ["gs://wary/there/file"]
    assert run(server, "rsync", "-r", str(tmp_path / "empty"), "gs://wary/there") == ""  # removes nothing


def test_mv_leaves_the_thing_in_one_place(server: LiveServer, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / "sub").mkdir(parents=True)
    (folder / "one").write_text("1")
    (folder / "sub/two").write_text("2")
    run(server, "buckets", "create", "gs://movers")
    run(server, "mv", str(folder), "gs://movers/run")
    assert tree(folder) == {}
    run(server, "mv", "gs://movers/run/one", "gs://movers/first")
    run(server, "mv", "gs://movers/run", "gs://movers/ran")
    assert run(server, "ls", "-r", "gs://movers").split() == ["gs://movers/first", "gs://movers/ran/sub/two"]
    run(server, "mv", "gs://movers/ran", str(tmp_path / "back"))
    assert tree(tmp_path / "back") == {"sub/two": b"2"}
    assert "are the same" in run(server, "mv", "gs://movers/first", "gs://movers/first", fails=True)
    found = json.loads(run(server, "ls", "--json", "gs://movers"))
    assert [(one["name"], one["size"]) for one in found] == [("first", "1")]


# ---- targets and sources that are not plain files


def test_a_link_is_followed_and_a_pipe_is_written_into(server: LiveServer, tmp_path: Path) -> None:
    run(server, "buckets", "create", "gs://odd-targets")
    (tmp_path / "source").write_text("content")
    run(server, "cp", str(tmp_path / "source"), "gs://odd-targets/x")
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    (tmp_path / "dangling").symlink_to("real/new")
    for link in ("link", "dangling"):
        run(server, "cp", "gs://odd-targets/x", str(tmp_path / link))
        assert (tmp_path / link).is_symlink()
    assert tree(tmp_path / "real") == {"file": b"content", "new": b"content"}
    (tmp_path / "loop").symlink_to("loop")
    assert "symbolic links" in run(server, "cp", "gs://odd-targets/x", str(tmp_path / "loop"), fails=True)
    assert (tmp_path / "loop").is_symlink()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        run(server, "cp", "gs://odd-targets/x", str(pipe))
        assert pipe.is_fifo()
        assert os.read(reader, 100) == b"content"
    finally:
        os.close(reader)
    assert not list(tmp_path.rglob("*.part"))


def test_a_source_that_is_no_file_is_told_and_not_waited_for(server: LiveServer, tmp_path: Path) -> None:
    run(server, "buckets", "create", "gs://odd-sources")
    pipe, listener = tmp_path / "pipe", tmp_path / "socket"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(listener))
        for source, kind in ((pipe, "a pipe"), (listener, "a socket"), (Path(os.devnull), "a device")):
            for verb in (("cp",), ("cp", "-r"), ("mv",)):
                told = run(server, *verb, str(source), "gs://odd-sources/x", fails=True)
                assert f"error: {source} is {kind}, not a file" in told
                assert (f"cp - TARGET < {source}" in told) == (kind != "a socket")
            assert source.exists()
    (tmp_path / "link").symlink_to(pipe)
    assert "is a pipe" in run(server, "cp", str(tmp_path / "link"), "gs://odd-sources/x", fails=True)
    assert run(server, "ls", "gs://odd-sources") == ""


def test_a_dash_is_the_standard_stream(server: LiveServer, tmp_path: Path) -> None:
    run(server, "buckets", "create", "gs://streams")
    for size in (0, 10, 40 << 20):  # the last one is sent in pieces
        content = os.urandom(size)
        sent = tried(server, "cp", "-", "gs://streams/y", stdin=content)
        assert (sent.returncode, sent.stdout, sent.stderr) == (0, b"", b"")
        got = tried(server, "cp", "gs://streams/y", "-")
        assert (got.returncode, got.stderr) == (0, b"")
        assert got.stdout == content
    (tmp_path / "file").touch()
    assert "names no object" in run(server, "cp", "-", "gs://streams", fails=True)
    assert "names no object" in run(server, "cp", "-", "gs://streams/y/", fails=True)
    assert "alone" in run(server, "cp", "-", str(tmp_path / "file"), "gs://streams/y/", fails=True)
    assert "one object" in run(server, "cp", "-r", "gs://streams/y", "-", fails=True)
    assert "not in a bucket" in run(server, "cp", str(tmp_path / "file"), "-", fails=True)
    assert "cannot be moved" in run(server, "mv", "gs://streams/y", "-", fails=True)
    assert run(server, "ls", "gs://streams").split() == ["gs://streams/y"]


def test_a_file_whose_name_no_object_can_have_is_named(server: LiveServer, tmp_path: Path) -> None:
    run(server, "buckets", "create", "gs://odd-names")
    for number, (name, shown) in enumerate(((b"a\nb", b"a\\nb"), (b"a\xffb", b"a\\xffb"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / os.fsdecode(name)).touch()
        for verb in ("cp", "rsync"):
            told = tried(server, verb, "-r", str(folder), "gs://odd-names/x")
            assert told.returncode == 1
            assert os.fsencode(folder) + b"/" + shown in told.stderr, told.stderr
            assert b"Traceback" not in told.stderr


def test_cp_and_rsync_follow_links_within_the_tree_and_tell_what_they_skip(
    server: LiveServer, tmp_path: Path
) -> None:
    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder / "sub/file").write_text("1")
    (folder / "inside").symlink_to("sub/file")
    (folder / "outside").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to("sub")
    (folder / "nowhere").symlink_to("none")
    os.mkfifo(folder / "pipe")
    run(server, "buckets", "create", "gs://linked")
    run(server, "cp", str(folder / "sub/file"), "gs://linked/rsync/outside")
    skipped = {f"skipped {folder}/{name}" for name in ("outside", "folder", "nowhere", "pipe")}
    for verb in (("cp", "-r"), ("rsync", "-r"), ("rsync", "-r", "-d")):
        done = tried(server, *verb, str(folder), f"gs://linked/{verb[0]}")
        assert done.returncode == 0, done.stderr
        assert {line.partition(":")[0] for line in done.stderr.decode().splitlines()} == skipped
    # What was skipped is not taken for gone.
    assert run(server, "ls", "-r", "gs://linked").split() == [
        "gs://linked/cp/inside",
        "gs://linked/cp/sub/file",
        "gs://linked/rsync/inside",
        "gs://linked/rsync/outside",
        "gs://linked/rsync/sub/file",
    ]
    assert run(server, "cat", "gs://linked/cp/inside", "gs://linked/rsync/outside") == "11"
    run(server, "mv", str(folder), "gs://linked/moved")
    assert run(server, "cat", "gs://linked/moved/inside", "gs://linked/moved/sub/file") == "11"
    assert sorted(p.name for p in folder.iterdir()) == ["folder", "nowhere", "outside", "pipe", "sub"]


# ---- what breaks in the middle


@pytest.mark.slow
def test_ctrl_c_leaves_no_half_file_and_no_half_object(server: LiveServer, tmp_path: Path) -> None:
    run(server, "buckets", "create", "gs://broken")
    big, into = tmp_path / "big", tmp_path / "into"
    with big.open("wb") as file:
        for _ in range(3):
            file.write(os.urandom(100 << 20))
    run(server, "cp", str(big), "gs://broken/whole")
    for source, target in ((str(big), "gs://broken/half"), ("gs://broken/whole", f"{into}/half")):
        started = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from trainshed.cli.main import main; main()",
                "storage",
                "cp",
                source,
                target,
            ],
            env=os.environ | {"TRAINSHED_HOME": str(server.home), "TRAINSHED_URL": server.url},
            stderr=subprocess.PIPE,
        )
        until = time.monotonic() + 60
        parts = into if target.startswith("/") else server.home / "buckets/.trainshed/held"
        while not any(p.stat().st_size > (8 << 20) for p in parts.glob(".*.part" if parts == into else "*")):
            assert time.monotonic() < until
            assert started.poll() is None
            time.sleep(0.005)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
        assert started.returncode == 130, said
        assert b"Traceback" not in said
    assert run(server, "ls", "gs://broken").split() == ["gs://broken/whole"]
    assert list(into.iterdir()) == []
    held = server.home / "buckets" / ".trainshed" / "held"
    assert [p for p in held.iterdir() if p.stat().st_size] == []


@pytest.mark.fault(
    "Buckets",
    "The server is killed during an upload or a download",
    "The command waits for the next server and goes on where it was.",
)
@pytest.mark.slow
def test_an_upload_and_a_download_go_on_after_the_server_was_killed(
    server: LiveServer, tmp_path: Path
) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        for _ in range(3):
            file.write(os.urandom(100 << 20))
    run(server, "buckets", "create", "gs://outlasts")
    command = [sys.executable, "-c", "from trainshed.cli.main import main; main()", "storage", "cp"]
    env = os.environ | {"TRAINSHED_HOME": str(server.home), "TRAINSHED_URL": server.url}
    held = server.home / "buckets" / ".trainshed" / "held"
    for source, target, seen in (
        (str(big), "gs://outlasts/big", lambda: list(held.iterdir())),
        ("gs://outlasts/big", str(tmp_path / "back"), lambda: list(tmp_path.glob(".*.part"))),
    ):
        started = subprocess.Popen([*command, source, target], env=env, stderr=subprocess.PIPE)
        until = time.monotonic() + 60
        while not any(p.stat().st_size > (80 << 20) for p in seen()):
            assert time.monotonic() < until
            assert started.poll() is None
            time.sleep(0.005)
        server.kill()
        server.start()
        _, said = started.communicate(timeout=100)
        assert started.returncode == 0, said
    assert (tmp_path / "back").read_bytes() == big.read_bytes()
