"""Manifests and frames: what is understood, and every fault with its path."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.errors import Invalid
from trainshed.core.supplies.code import MOST_FILES, MOST_SIZE, Header, Mode
from trainshed.wire.code import FrameReader, parse_manifest, render_manifest

HASH = "ab" * 32


def row(**changed: object) -> dict[str, object]:
    return {"path": "a", "sha256": HASH, "size": 3, "mode": "100644", **changed}


def refused(*rows: object) -> dict[str, str]:
    return faults({"files": list(rows)})


def faults(body: object) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        parse_manifest(json.dumps(body).encode())
    return {one.field: one.description for one in caught.value.violations}


def test_a_manifest_is_read_in_any_order_and_written_as_it_came():
    rows = [row(path="b", mode="100755"), row(path="a/c", mode="120000"), row(path="a/b", size="3")]
    manifest = parse_manifest(json.dumps({"files": rows}).encode())
    assert [(file.path, file.mode) for file in manifest.files] == [
        ("a/b", Mode.PLAIN),
        ("a/c", Mode.LINK),
        ("b", Mode.EXECUTABLE),
    ]
    assert parse_manifest(json.dumps(render_manifest(manifest)).encode()) == manifest


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'{"files": [' + b"[" * 100_000])
def test_what_is_no_json_object_is_refused(body: bytes):
    with pytest.raises(Invalid):
        parse_manifest(body)


@pytest.mark.parametrize(
    "body", [{}, {"files": None}, {"files": {}}, {"files": "x"}, {"files": [], "more": 1}]
)
def test_what_is_no_list_of_files_is_refused(body: dict[str, Any]):
    assert faults(body).keys() <= {"files", "more"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"path": ""}, "path"),
        ({"path": "../x"}, "path"),
        ({"path": "/x"}, "path"),
        ({"path": 5}, "path"),
        ({"path": "a\0"}, "path"),
        ({"path": "\ud800"}, "path"),
        ({"sha256": HASH.upper()}, "sha256"),
        ({"sha256": HASH[1:]}, "sha256"),
        ({"sha256": None}, "sha256"),
        ({"size": -1}, "size"),
        ({"size": 1.5}, "size"),
        ({"size": "many"}, "size"),
        ({"size": True}, "size"),
        ({"size": MOST_SIZE + 1}, "size"),
        ({"size": 10**30}, "size"),
        ({"mode": "100600"}, "mode"),
        ({"mode": "040000"}, "mode"),
        ({"mode": 33188}, "mode"),
        ({"mode": []}, "mode"),
        ({"mode": "120000", "size": 0}, "size"),
        ({"mode": "120000", "size": 5000}, "size"),
        ({"owner": "me"}, "owner"),
    ],
)
def test_one_thing_wrong_with_a_file_is_told_with_its_path(change: dict[str, object], field: str):
    assert refused(row(path="fine"), row(**change)).keys() == {f"files[1].{field}"}


def test_everything_wrong_is_told_at_once():
    wrong = refused(row(path=".."), "x", row(size=-1, mode="x"), {"path": "b"})
    assert wrong.keys() == {
        "files[0].path",
        "files[1]",
        "files[2].size",
        "files[2].mode",
        *(f"files[3].{name}" for name in ("sha256", "size", "mode")),
    }


def test_a_file_below_a_link_and_two_of_one_name_are_refused():
    wrong = refused(row(path="a", mode="120000"), row(path="a/x"), row(path="b"), row(path="b"))
    assert wrong.keys() == {"files[1].path", "files[3].path"}


def test_two_sizes_of_one_content_are_refused():
    assert refused(row(path="a"), row(path="b", size=4)).keys() == {"files[1].size"}


def test_too_many_files_and_too_many_bytes_are_refused():
    assert "at most 100000 files" in refused(*[{}] * (MOST_FILES + 1))["files"]
    half = {"size": MOST_SIZE // 2 + 1}
    wrong = refused(row(path="a", **half), row(path="b", sha256="cd" * 32, **half))
    assert f"at most {MOST_SIZE} bytes" in wrong["files"]


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    parts: list[bytes] = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    return [*parts, data]


@given(st.lists(st.binary(max_size=200), max_size=6), st.lists(st.integers(0, 100), max_size=20))
def test_frames_are_the_same_however_the_stream_is_cut(contents: list[bytes], sizes: list[int]):
    data = b"".join(f"{hashlib.sha256(c).hexdigest()} {len(c)}\n".encode() + c for c in contents)
    reader, found = FrameReader(), list[bytes]()
    for part in cut(data, sizes):
        for piece in reader.feed(part):
            if isinstance(piece, Header):
                found.append(b"")
            else:
                found[-1] += piece
    reader.finish()
    assert found == contents


@given(st.binary(max_size=300), st.lists(st.integers(0, 100), max_size=5))
def test_any_bytes_are_frames_or_refused(data: bytes, sizes: list[int]):
    reader = FrameReader()
    try:
        for part in cut(data, sizes):
            list(reader.feed(part))
        reader.finish()
    except Invalid as error:
        assert error.violations[0].field == "frames[0]"
    else:
        assert not data


@pytest.mark.parametrize(
    "head",
    [
        b"x\n",
        HASH.encode() + b"\n",
        HASH.encode() + b" -1\n",
        HASH.upper().encode() + b" 1\n",
        HASH.encode() + b"  1\n",
        HASH.encode() + b" 99999999999\n",
        HASH.encode() + b" 1\r\n",
        b"x" * 5000,
    ],
)
def test_a_wrong_header_is_refused_after_what_came_before_it(head: bytes):
    reader, found = FrameReader(), list[object]()
    with pytest.raises(Invalid, match="A frame must begin with"):
        for piece in reader.feed(f"{HASH} 2\nab".encode() + head):
            found.append(piece)
    assert found == [Header(HASH, 2), b"ab"]
