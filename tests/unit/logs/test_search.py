"""A search gives the lines that hold a text, with their numbers, from any line on, both ways."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.logs.test_chunks import FEW, SMALL, Written, anywhere, writes
from tests.unit.logs.test_line_order import counted, drop
from trainshed.core.log_lines import FindQuery, LineChoice, NumberedLine
from trainshed.logs import chunks, line_counts, lines, search
from trainshed.logs.line_counts import LineCounts
from trainshed.logs.search import LineSearch


@pytest.fixture(scope="class")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", SMALL)
        patch.setattr(line_counts, "SPAN", 2 * SMALL)
        patch.setattr(chunks, "MOST", FEW)
        patch.setattr(search, "_STEP", FEW)
        patch.setattr(search, "_WINDOW", 3)
        yield


class Words:
    """Finds a word, as a pattern of a query does."""

    def __init__(self, word: bytes) -> None:
        self._pattern = re.compile(re.escape(word))

    def search(self, text: bytes, pos: int, /) -> re.Match[bytes] | None:
        return self._pattern.search(text, pos)


def searched(written: Written, query: FindQuery) -> tuple[list[NumberedLine], int]:
    counts = [LineCounts(file) for file in written.files]
    counted(written, counts)
    search = LineSearch(written.views(), counts, query)
    lines: list[NumberedLine] = []
    matches = 0
    while (step := search.step()) is not None:
        lines += step.lines
        matches = step.matches
    return lines, matches


@pytest.mark.usefixtures("small")
class TestAnySearch:
    @settings(max_examples=200)
    @given(writes, st.sampled_from([b"f", b"trainshed"]), anywhere, anywhere)
    def test_every_line_with_the_text_is_given_with_its_number(
        self, turns: list[tuple[int, bytes, bool]], word: bytes, gap: int, somewhere: int
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            written = Written(Path(folder) / "j")
            written.write(turns)
            written.date()
            drop(written, gap)
            shown = list(enumerate(written.lines(), 1))
            line = somewhere % (len(shown) + 1) + 1
            query = FindQuery(choice=LineChoice(), pattern=Words(word), line=line, limit=10**6)
            wanted = [NumberedLine(n, row) for n, row in shown if word.decode() in row.text and n >= line]
            assert searched(written, query) == (wanted, len(wanted))
            query = FindQuery(
                choice=LineChoice(), pattern=Words(word), line=line, backwards=True, limit=10**6
            )
            wanted = [NumberedLine(n, row) for n, row in shown if word.decode() in row.text and n <= line]
            assert searched(written, query) == (wanted[::-1], len(wanted))


def test_matches_beyond_the_limit_are_only_counted(tmp_path: Path) -> None:
    written = Written(tmp_path / "j")
    written.write([(0, b"a match\nno\n" * 1000, True), (2, b"a match\n", True)])
    for backwards in (False, True):
        query = FindQuery(
            choice=LineChoice(),
            pattern=Words(b"match"),
            line=-1 if backwards else 1,
            backwards=backwards,
            limit=3,
        )
        given_lines, matches = searched(written, query)
        assert matches == 1001
        assert [row.number for row in given_lines] == ([2001, 1999, 1997] if backwards else [1, 3, 5])
