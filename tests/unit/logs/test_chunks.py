"""Output as bytes: the order of its lines, each byte once, from wherever a reader goes on."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainshed.core.logs import Chunk, Line, LogQuery, OutputPlace, OutputQuery, OutputStream
from trainshed.core.names import ReplicaName
from trainshed.logs import chunks, lines, lookback, merge
from trainshed.logs.chunks import ChunkReader
from trainshed.logs.drop import Drop
from trainshed.logs.file import ReadableRange
from trainshed.logs.job import JobLog
from trainshed.logs.lines import pieces
from trainshed.logs.lookback import count_pieces
from trainshed.logs.scan import line_start

SMALL = 16  # in place of a block of lines
FEW = 40  # in place of the bytes that are given out or looked at at once

texts = st.sampled_from(
    [b"\n", b"a\n", b"line of text\n", b"part", "é€".encode(), b"\x80", b"x" * 21, b"y" * 50 + b"\n", b""]
)
writes = st.lists(st.tuples(st.integers(0, 3), texts, st.booleans()), max_size=30)
anywhere = st.integers(0, 10**6)
Byte = tuple[int, int, OutputStream, int]  # pool, index, stream, offset


@pytest.fixture(scope="class")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", SMALL)
        patch.setattr(chunks, "MOST", FEW)
        patch.setattr(lookback, "_WINDOW", FEW)
        yield


@dataclass
class Written:
    """A job's files, written in turns and dated now and then."""

    folder: Path
    log: JobLog = field(init=False)
    now: int = 10**9

    def __post_init__(self) -> None:
        self.log = JobLog(self.folder)
        self.log.begin()
        self.files = [file for index in range(2) for file in self.log.open(ReplicaName("j", 0, 0, index))]

    def write(self, turns: list[tuple[int, bytes, bool]]) -> None:
        for which, data, is_dated in turns:
            with Path(self.files[which].path).open("ab") as out:
                out.write(data)
            if is_dated:
                self.date()

    def date(self) -> None:
        self.now += 500
        self.log.stamp(self.files, self.now)

    def close(self) -> None:
        self.now += 500
        self.log.close(self.now)

    def views(self) -> list[ReadableRange]:
        return self.log.views()

    def lines(self) -> list[Line]:
        return list(merge.read(self.views(), LogQuery(limit=10**6)))

    def bytes_of(self, shown: list[Line]) -> list[Byte | str]:
        """Every byte of these lines with its place, in order; a line that stands for others by its text."""
        ends: dict[tuple[int, OutputStream, int], int] = {}
        for file in self.files:
            mine = [
                line for line in self.lines() if (line.index, line.stream) == (file.name.index, file.stream)
            ]
            after = chunks.decided(file.view(), file.index.count)
            for line in reversed(mine):
                ends[line.index, line.stream, line.sequence] = after
                after = line.sequence
        found: list[Byte | str] = []
        for line in shown:
            if line.text.startswith("[trainshed"):
                found.append(line.text)
                continue
            end = ends[line.index, line.stream, line.sequence]
            found += [(line.pool, line.index, line.stream, at) for at in range(line.sequence, end)]
        return found


def read(written: Written, query: OutputQuery, most: int = 10**6) -> list[Chunk]:
    reader, found = ChunkReader(query), list[Chunk]()
    while len(found) < most and (more := reader.read(written.views())):
        found += more
    return found[:most]


def bytes_in(found: list[Chunk]) -> list[Byte | str]:
    places: list[Byte | str] = []
    for chunk in found:
        end = chunk.end
        if chunk.is_marker:
            places.append(chunk.data.decode().rstrip("\n"))
            continue
        start = end.offset - len(chunk.data)
        places += [(end.pool, end.index, end.stream, at) for at in range(start, end.offset)]
    return places


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "j")


@pytest.mark.usefixtures("small")
class TestAnyOutput:
    @settings(max_examples=150)
    @given(writes, writes, st.booleans(), anywhere, anywhere)
    def test_bytes_come_in_the_order_of_lines_and_go_on_from_every_chunk(
        self,
        before: list[tuple[int, bytes, bool]],
        after: list[tuple[int, bytes, bool]],
        is_closed: bool,
        somewhere: int,
        gap: int,
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            written = Written(Path(folder) / "j")
            written.write(before)
            written.date()
            first = read(written, OutputQuery())
            assert bytes_in(first) == written.bytes_of(written.lines())
            kept = first[: somewhere % (len(first) + 1)]
            written.write(after)
            written.date()
            if is_closed:
                written.close()
            file = written.files[gap % 4]
            if gap % 3 == 0 and not kept and (end := file.index.last.end):
                head, cut = sorted(line_start(file, at % end) for at in (gap, gap // 7))
                if head < cut:
                    file.drop = Drop(head, cut, 1)
            expected = written.bytes_of(written.lines())
            rest = read(written, OutputQuery(after=kept[-1].end if kept else None))
            assert bytes_in(kept) + bytes_in(rest) == expected
            shown = written.lines()
            for count in {1, 2, len(shown) // 2, len(shown), len(shown) + 3} - {0}:
                last = bytes_in(read(written, OutputQuery(last=count)))
                assert last == written.bytes_of(shown[-count:]), count
            for line in (*shown[:3], *shown[-3:]):
                for since in (line.at_ns, line.at_ns + 1):
                    query = LogQuery(limit=10**6, since_ns=since)
                    wanted = written.bytes_of(list(merge.read(written.views(), query)))
                    assert bytes_in(read(written, OutputQuery(since_ns=since))) == wanted

    @given(st.lists(texts, min_size=1, max_size=20).map(b"".join), anywhere)
    def test_pieces_are_counted_without_being_cut(self, data: bytes, somewhere: int) -> None:
        known = list(pieces(data, 0, 0, closed=True))
        for first in range(len(known)):
            base = max(0, known[first].start - 1)
            assert count_pieces(data[base:], base, known[first].start) == len(known) - first


def test_a_chunk_is_whole_lines_where_a_line_is_shorter_than_a_chunk(written: Written) -> None:
    line = b"z" * 99 + b"\n"
    written.write([(0, line * 30_000, True)])
    found = read(written, OutputQuery())
    assert len(found) > 1
    assert all(chunk.data.endswith(b"\n") and len(chunk.data) <= chunks.MOST for chunk in found)
    assert b"".join(chunk.data for chunk in found) == line * 30_000


def test_an_emptied_file_ends_the_read_and_a_later_one_says_what_is_gone(written: Written) -> None:
    written.write([(0, b"much to say\n", True)])
    Path(written.files[0].path).write_bytes(b"")
    reader = ChunkReader(OutputQuery())
    assert reader.read(written.views()) == ()
    written.write([(0, b"more\n", True)])
    marker, more = reader.read(written.views())
    assert marker.is_marker
    assert b"12 bytes" in marker.data
    assert more.data == b"more\n"


def test_a_place_is_text_and_back_and_nothing_else_is_one() -> None:
    place = OutputPlace(1, 0, 3, OutputStream.STDERR, 7, 123456789012)
    assert OutputPlace.parse(str(place)) == place
    for text in ("", "1.0.3.stdin.7.1", "1.0.3.stderr.7", "1.0.3.stderr.7.-1", "a.0.3.stderr.7.1", "9" * 50):
        with pytest.raises(ValueError):
            OutputPlace.parse(text)
