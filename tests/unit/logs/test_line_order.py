"""Lines by number: the same lines as read one after the other, whatever was printed, dropped or emptied."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.unit.logs.test_chunks import SMALL, Written, anywhere, writes
from trainshed.logs import line_counts, lines
from trainshed.logs.drop import Drop
from trainshed.logs.line_counts import LineCounts
from trainshed.logs.line_order import LineOrder
from trainshed.logs.scan import line_start


@pytest.fixture(scope="class")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", SMALL)
        patch.setattr(line_counts, "SPAN", 2 * SMALL)
        patch.setattr(line_counts, "_WINDOW", 3)
        yield


def counted(written: Written, counts: list[LineCounts]) -> LineOrder:
    for view, count in zip(written.views(), counts, strict=True):
        while not count.is_complete(view.end):
            count.extend(view.end)
    return LineOrder(written.views(), counts)


def is_numbered_as_read(written: Written, order: LineOrder) -> None:
    shown = written.lines()
    assert order.total == len(shown)
    for number, line in enumerate(shown):
        assert order.time_of(number) == line.at_ns
        assert order.number_of(line.at_ns) == number
        assert order.number_of(line.at_ns + 1) == number + 1
    assert order.number_of(0) == 0


def drop(written: Written, gap: int) -> None:
    file = written.files[gap % 4]
    if gap % 3 == 0 and (end := file.index.last.end):
        head, cut = sorted(line_start(file, at % end) for at in (gap, gap // 7))
        if head < cut:
            file.drop = Drop(head, cut, 1)
            with Path(file.path).open("r+b") as hole:
                hole.seek(head)
                hole.write(bytes(cut - 1 - head))


@pytest.mark.usefixtures("small")
class TestAnyLines:
    @settings(max_examples=200)
    @given(writes, writes, anywhere, anywhere)
    def test_lines_are_numbered_in_the_order_they_are_read(
        self,
        before: list[tuple[int, bytes, bool]],
        after: list[tuple[int, bytes, bool]],
        gap: int,
        turn: int,
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            written = Written(Path(folder) / "j")
            written.write(before)
            written.date()
            counts = [LineCounts(file) for file in written.files]
            if turn % 2:
                is_numbered_as_read(written, counted(written, counts))  # counted before the drop
            drop(written, gap)
            is_numbered_as_read(written, counted(written, counts))
            written.write(after)
            written.date()
            if turn % 3:
                written.close()
            is_numbered_as_read(written, counted(written, counts))
            is_numbered_as_read(written, counted(written, [LineCounts(file) for file in written.files]))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    written = Written(tmp_path / "j")
    written.write([(0, b"a line of some length\n" * 20_000, True), (2, b"another\n" * 30_000, True)])
    return written


def test_counts_are_kept_and_used_again(written: Written) -> None:
    counts = [LineCounts(file) for file in written.files]
    total = counted(written, counts).total
    for count in counts:
        count.save(is_last=True)
    again = [LineCounts(file) for file in written.files]
    assert [count.counted for count in again] == [count.counted for count in counts]
    assert again[0].counted > 0
    assert LineOrder(written.views(), again).total == total == 50_000


@pytest.mark.parametrize("damage", ["cut", "flipped", "of another file", "longer", "a folder"])
def test_damaged_counts_are_made_again(written: Written, damage: str) -> None:
    counts = [LineCounts(file) for file in written.files]
    counted(written, counts)
    counts[0].save(is_last=True)
    path = Path(f"{written.files[0].path}.lines")
    data = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(data[:-3])
        case "flipped":
            path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
        case "of another file":
            path.write_bytes(b"something else that is long enough to be read as a head of counts")
        case "longer":
            path.write_bytes(data + b"more")
        case _:
            path.unlink()
            path.mkdir()
    again = [LineCounts(file) for file in written.files]
    assert again[0].counted == 0
    is_numbered = counted(written, again)
    assert is_numbered.total == 50_000
    again[0].save(is_last=True)  # a folder in its place is no reason to fail
