"""A folder as values: its id, the rules for its names, and what cannot lie beside what."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.supplies.code import (
    File,
    FolderManifest,
    Mode,
    collisions,
    contradictions,
    is_hash,
    link_faults,
    manifest_of,
    path_fault,
    read_manifest,
)

EMPTY = hashlib.sha256(b"").hexdigest()


def file(path: str, mode: Mode = Mode.PLAIN) -> File:
    return File(path, EMPTY, 0, mode)


def test_the_id_is_the_hash_over_the_rows_in_order_of_the_paths_bytes():
    files = [file("b"), file("a/x", Mode.EXECUTABLE), file("é"), file("a-b"), file("Z", Mode.LINK)]
    rows = [
        f"120000 {EMPTY} 0 Z\0",
        f"100644 {EMPTY} 0 a-b\0",
        f"100755 {EMPTY} 0 a/x\0",
        f"100644 {EMPTY} 0 b\0",
        f"100644 {EMPTY} 0 é\0",
    ]
    assert manifest_of(files).id == hashlib.sha256("".join(rows).encode()).hexdigest()


def test_an_id_does_not_depend_on_the_order_of_the_list():
    files = [file("b"), file("a"), file("c/d")]
    assert manifest_of(files).id == manifest_of(files[::-1]).id


def test_the_id_tells_a_change_of_name_content_size_or_mode():
    first = File("a", EMPTY, 0)
    others = [
        File("b", EMPTY, 0),
        File("a", "1" * 64, 0),
        File("a", EMPTY, 1),
        File("a", EMPTY, 0, Mode.LINK),
    ]
    assert len({FolderManifest((one,)).id for one in (first, *others)}) == 5


_paths = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=20)


@given(st.lists(st.builds(File, _paths, st.just(EMPTY), st.integers(0, 10**10), st.sampled_from(Mode))))
def test_what_is_kept_of_a_folder_can_be_read_again(files: list[File]):
    manifest = manifest_of(files)
    assert read_manifest(manifest.text) == manifest


@pytest.mark.parametrize("text", [b"x\0", b"100644 a b c\0", b"100600 a 1 c\0", b"100644 a 1 \xff\0"])
def test_what_is_no_list_of_files_is_a_value_error(text: bytes):
    with pytest.raises(ValueError, match=r".+"):
        read_manifest(text)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "empty"),
        ("/etc/passwd", "relative"),
        ("..", "lead out"),
        ("../a", "lead out"),
        ("a/../b", "lead out"),
        ("a/..", "lead out"),
        ("a//b", "plainly"),
        ("a/", "plainly"),
        ("./a", "plainly"),
        (".", "plainly"),
        ("a\0b", "NUL"),
        (".git/config", "history"),
        ("sub/.git", "history"),
        (".GIT/config", "history"),
        ("x" * 256, "255 bytes"),
        ("é" * 128, "255 bytes"),
        ("/".join(["x" * 200] * 21), "4095 bytes"),
        ("a/" * 200 + "a", "200 folders"),
    ],
)
def test_a_path_that_cannot_be_is_refused(path: str, why: str):
    assert why in (path_fault(path) or "")


@pytest.mark.parametrize(
    "path", ["a", "...", "..a", "a..", ".gitignore", "a b", "a\nb", "-rf", "é/大", "x" * 255]
)
def test_odd_names_may_be(path: str):
    assert path_fault(path) is None


def test_two_of_one_name_collide():
    assert list(collisions([file("a"), file("b"), file("a")])) == [(2, "is the path of files[0] as well.")]


def test_nothing_lies_below_a_file_or_a_link():
    files = [file("a/b/c"), file("a", Mode.LINK), file("d"), file("d/e"), file("d-e"), file("f/g")]
    assert list(collisions(files)) == [
        (0, "lies below files[1], which is a link and not a folder."),
        (3, "lies below files[2], which is a file and not a folder."),
    ]


def test_one_content_has_one_size():
    files = [File("a", EMPTY, 0), File("b", "1" * 64, 5), File("c", EMPTY, 1)]
    assert [number for number, _ in contradictions(files)] == [2]


@pytest.mark.parametrize("target", [b"", b"a\0b", b"x" * 4096])
def test_what_can_be_no_target_of_a_link_is_told(target: bytes):
    assert [path for path, _ in link_faults({"a": target})] == ["a"]


OUTWARD: dict[str, dict[str, bytes]] = {
    "absolute": {"a": b"/etc/passwd"},
    "up": {"a": b".."},
    "up and down": {"d/a": b"../../d/x"},
    "down and up": {"a": b"d/../../x"},
    "by another": {"d/e/top": b"../..", "a": b"d/e/top/../x"},
    "by several": {"d/b": b"..", "d/c": b"b/d/b", "a": b"d/c/../x"},
}


@pytest.mark.parametrize("targets", OUTWARD.values(), ids=OUTWARD)
def test_a_link_that_leads_out_is_told_by_whatever_way(targets: dict[str, bytes]):
    faults = dict(link_faults(targets))
    assert list(faults) == [list(targets)[-1]]
    assert "leads out of the folder" in faults[list(targets)[-1]]


def test_links_inside_to_nothing_and_in_circles_are_none_of_our_business():
    targets = {
        "a": b"b/c",
        "d/e": b"../x",
        "top": b".",
        "d/top": b"..",
        "loop": b"loop",
        "l": b"m",
        "m": b"l",
    }
    assert list(link_faults(targets)) == []


def test_links_through_links_take_no_longer_than_their_limit():
    targets = {f"l{n}": b"./" * 2000 + f"l{n + 1}".encode() for n in range(2000)}
    faults = list(link_faults(targets))
    assert len(faults) == 1 and "too often" in faults[0][1]


def test_only_64_lower_hexadecimal_digits_are_a_hash():
    assert is_hash(EMPTY)
    assert not any(
        map(is_hash, ("", EMPTY[:-1], EMPTY + "0", EMPTY.upper(), EMPTY + "\n", "../" + EMPTY[3:]))
    )
