"""Cutting bytes into lines: the same lines from anywhere, however the file was written."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.logs import lines
from trainshed.logs.lines import LONGEST, UNENDED, LinePiece, Read, boundary, pieces

BLOCK = lines.BLOCK
SMALL = 16  # in place of BLOCK: boundaries and long characters then meet in every way

runs = st.tuples(
    st.sampled_from(
        [b"a", b"\n", "é".encode(), "€".encode(), "😀".encode(), b"\x80", b"\xff", b"\0", b"x\n"]
    ),
    st.integers(1, 3 * SMALL),
)
contents = st.lists(runs, min_size=1, max_size=8).map(lambda found: b"".join(byte * n for byte, n in found))
anywhere = st.integers(0, 10**6)


@pytest.fixture(scope="module")
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", SMALL)
        yield


def whole(data: bytes, closed: bool = True) -> list[LinePiece]:
    return list(pieces(data, 0, 0, closed))


def reader(data: bytes) -> Read:
    return lambda offset, length: data[offset : offset + length]


@pytest.mark.usefixtures("small_blocks")
class TestAnyBytes:
    @given(contents)
    def test_pieces_put_together_are_the_bytes(self, data: bytes) -> None:
        at = 0
        for piece in whole(data):
            assert piece.start == at
            newline = piece.decided == piece.stop - 1 and data[piece.decided : piece.stop] == b"\n"
            assert data[at : piece.stop] == piece.data + (b"\n" if newline else b"")
            assert b"\n" not in piece.data
            assert 0 < piece.stop - piece.start <= 2 * SMALL + 3
            at = piece.stop
        assert at == len(data)

    @given(contents, anywhere)
    def test_a_reader_starting_anywhere_finds_the_same_pieces(self, data: bytes, somewhere: int) -> None:
        known = whole(data)
        offset = somewhere % len(data)
        start = boundary(reader(data), offset)
        assert start == next(piece.start for piece in known if piece.start <= offset < piece.stop)
        base = max(0, start - 1)
        assert list(pieces(data[base:], base, start, True)) == [
            piece for piece in known if piece.start >= start
        ]

    @given(contents, anywhere)
    def test_a_piece_once_decided_never_changes(self, data: bytes, somewhere: int) -> None:
        seen = somewhere % (len(data) + 1)
        early = whole(data[:seen], closed=False)
        assert early == [piece for piece in whole(data, closed=False) if piece.decided < seen]

    @given(st.text(st.sampled_from("aé€😀"), min_size=1, max_size=200))
    def test_no_character_is_cut_in_two(self, text: str) -> None:
        assert "".join(piece.data.decode() for piece in whole(text.encode())) == text


def test_a_piece_stays_short_and_is_found_again_from_every_byte() -> None:
    data = b"x" * 100 + b"\n" + b"\xff" * (5 * BLOCK + 77) + b"\nlast"
    known = whole(data)
    assert len(known) > 5
    for piece in known:
        assert len(piece.data) <= LONGEST
        assert len(piece.data.decode("utf-8", "replace").encode()) < 256 * 1024
        for offset in (piece.start, (piece.start + piece.stop) // 2, piece.stop - 1):
            assert boundary(reader(data), offset) == piece.start


def test_only_a_newline_ends_a_line() -> None:
    assert [piece.data for piece in whole(b"a\r\n\x0b\x0c\x85b\n\nc")] == [
        b"a\r",
        b"\x0b\x0c\x85b",
        b"",
        b"c",
    ]


def test_a_last_line_without_newline_waits_until_the_file_is_closed() -> None:
    assert [piece.data for piece in whole(b"a\nb", closed=False)] == [b"a"]
    assert whole(b"a\nb")[-1] == LinePiece(2, 3, UNENDED, b"b")
