"""A table in aligned columns. On a terminal the last column is cut to fit; in a pipe nothing is ever cut."""

import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence

from trainshed.cli.paint import Paint

_PAINTED = re.compile(r"\x1b\[[0-9;]*m")
GAP = "  "


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "", whole: bool = False
) -> str:
    """The rows below their headers. Columns with nothing in any row are left out; `whole` cuts nothing."""
    used = [at for at, _ in enumerate(headers) if any(row[at] for row in rows)]
    if not used:
        return ""
    paint = Paint.for_stdout()
    head = [headers[at] for at in used]
    body = [_cells([row[at] for at in used], whole) for row in rows]
    widths = [max(width(line[at]) for line in (head, *body)) for at in range(len(used))]
    if sys.stdout.isatty() and not whole:
        taken = len(indent) + sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
        room = max(20, shutil.get_terminal_size().columns - taken)
        body = [[*line[:-1], cut(line[-1], room)] for line in body]
    painted = [indent + paint(_line(head, widths), "dim")]
    return "\n".join((*painted, *(indent + _line(line, widths) for line in body)))


def _cells(cells: list[str], whole: bool) -> list[str]:
    """A name with line ends in it is no row of its own; of `whole` rows the last cell may have more lines."""
    last = cells[-1:] if whole else [_flat(cell) for cell in cells[-1:]]
    return [*map(_flat, cells[:-1]), *last] if sys.stdout.isatty() else cells


def _flat(cell: str) -> str:
    return cell.replace("\n", "^J")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (wide - width(cell)) for cell, wide in zip(cells, widths, strict=True)]
    return GAP.join(padded).rstrip()


def width(text: str) -> int:
    """The columns a text takes on a terminal: wide letters take two, accents and colours none."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in _PAINTED.sub("", text)
    )


def cut(text: str, room: int) -> str:
    """The text, or its beginning and an ellipsis. Painted text is left whole: half a colour code is worse."""
    if width(text) <= room or "\x1b" in text:
        return text
    kept = ""
    for letter in text:
        if width(kept + letter) > room - 1:
            break
        kept += letter
    return kept.rstrip() + "…"
