"""Old versions of objects, with the command line as a person uses it and with Google's own client."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_storage import run, tried
from tests.live import LiveServer


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer() as live:
        yield live


def written(server: LiveServer, place: str, *contents: bytes) -> None:
    for content in contents:
        done = tried(server, "cp", "-", place, stdin=content)
        assert done.returncode == 0, done.stderr


def test_what_was_removed_or_replaced_is_brought_back(server: LiveServer, tmp_path: Path) -> None:
    run(server, "buckets", "create", "gs://safe")
    run(server, "buckets", "update", "gs://safe", "--versioning")
    assert json.loads(run(server, "buckets", "describe", "gs://safe"))["versioning"] == {"enabled": True}
    written(server, "gs://safe/d/x", b"first", b"second")
    run(server, "rm", "gs://safe/d/x")
    assert run(server, "ls", "-r", "gs://safe") == ""
    first, second = run(server, "ls", "-a", "gs://safe/d/x").split()
    assert first.startswith("gs://safe/d/x#")
    assert run(server, "cat", first) == "first"
    assert tried(server, "cp", second, "-").stdout == b"second"
    run(server, "cp", first, str(tmp_path))
    assert (tmp_path / "x").read_text() == "first"
    run(server, "objects", "restore", "gs://safe/d/x")
    assert run(server, "cat", "gs://safe/d/x") == "second"
    run(server, "objects", "restore", first)
    assert run(server, "cat", "gs://safe/d/x") == "first"
    run(server, "cp", second, "gs://safe/d/x")
    assert run(server, "cat", "gs://safe/d/x") == "second"
    assert len(run(server, "ls", "-a", "-r", "gs://safe").split()) == 5
    run(server, "rm", first)
    assert "No such object" in run(server, "cat", first, fails=True)
    assert "not moved" in run(server, "mv", second, "gs://safe/y", fails=True)
    run(server, "rm", "-a", "gs://safe/d/x")
    assert run(server, "ls", "-a", "gs://safe") == ""


def test_a_bucket_with_versions_goes_with_all_of_them(server: LiveServer) -> None:
    run(server, "buckets", "create", "gs://gone")
    run(server, "buckets", "update", "gs://gone", "--versioning")
    written(server, "gs://gone/x", b"1", b"2")
    run(server, "rm", "gs://gone/x")
    assert "old versions are in it" in run(server, "buckets", "delete", "gs://gone", fails=True)
    run(server, "rm", "-r", "gs://gone")
    assert "gs://gone/" not in run(server, "ls").split()


def test_an_object_whose_name_looks_like_a_version_is_meant_first(server: LiveServer) -> None:
    run(server, "buckets", "create", "gs://odd")
    written(server, "gs://odd/x#1767268800000000", b"odd")
    assert run(server, "cat", "gs://odd/x#1767268800000000") == "odd"
    run(server, "rm", "gs://odd/x#1767268800000000")
    assert "No such object" in run(server, "cat", "gs://odd/x#1767268800000000", fails=True)


def test_rules_come_from_a_file_and_are_checked(server: LiveServer, tmp_path: Path) -> None:
    run(server, "buckets", "create", "gs://rules")
    rules = {"rule": [{"action": {"type": "Delete"}, "condition": {"numNewerVersions": 3, "isLive": False}}]}
    path = tmp_path / "rules.json"
    for told in (rules, {"lifecycle": rules}):
        path.write_text(json.dumps(told))
        run(server, "buckets", "update", "gs://rules", "--lifecycle-file", str(path))
        assert json.loads(run(server, "buckets", "describe", "gs://rules"))["lifecycle"] == rules
    path.write_text(json.dumps({"rule": [{"action": {"type": "Delete"}, "condition": {"aeg": 3}}]}))
    told = run(server, "buckets", "update", "gs://rules", "--lifecycle-file", str(path), fails=True)
    assert "lifecycle.rule[0].condition.aeg" in told
    path.write_text("[]")
    told = run(server, "buckets", "update", "gs://rules", "--lifecycle-file", str(path), fails=True)
    assert "holds no rules" in told
    run(server, "buckets", "update", "gs://rules", "--clear-lifecycle")
    assert "lifecycle" not in json.loads(run(server, "buckets", "describe", "gs://rules"))
    assert "say what to change" in run(server, "buckets", "update", "gs://rules", fails=True)
