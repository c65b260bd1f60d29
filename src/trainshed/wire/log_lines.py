"""Lines by number and searches in Google's JSON. For `api/log_lines.py`."""

import re
from importlib import import_module
from typing import Any

from trainshed.core.errors import Invalid, Unavailable, Violation
from trainshed.core.jobs.severity_words import severity_said
from trainshed.core.log_lines import FindStep, LinePage, LinePattern, LineTotal
from trainshed.core.logs import Line
from trainshed.wire.log_terms import MOST_MEMORY
from trainshed.wire.scalars import nanos_text

MOST_PATTERN = 1000  # characters


def render_page(page: LinePage) -> dict[str, Any]:
    numbers = (
        range(page.first, page.first + len(page.lines))
        if page.first is not None
        else [None] * len(page.lines)
    )
    rows = [render_numbered(line, number) for line, number in zip(page.lines, numbers, strict=True)]
    return {"lines": rows, "total": render_total(page.total)}


def render_total(total: LineTotal) -> dict[str, Any]:
    return {
        "lines": str(total.lines),
        "complete": total.is_complete,
        "sizeBytes": str(total.size),
        "countedBytes": str(total.counted),
    }


def render_numbered(line: Line, number: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {} if number is None else {"number": str(number)}
    return row | {
        "time": nanos_text(line.at_ns),
        "task": line.task,
        "attempt": line.attempt,
        "stream": line.stream.value,
        "severity": severity_said(line.text),
        "text": line.text,
        "insertId": line.insert_id,
    }


def render_step(step: FindStep) -> dict[str, Any]:
    return {
        "lines": [render_numbered(row.line, row.number) for row in step.lines],
        "matches": str(step.matches),
        "searchedBytes": str(step.searched),
        "sizeBytes": str(step.size),
    }


def text_pattern(text: str, *, is_exact: bool) -> LinePattern:
    """Finds that text; upper and lower case are the same unless it is exact."""
    _refuse_size("text", text)
    try:
        return _re2(re.escape(text), is_exact=is_exact, field="text")
    except Unavailable:
        # A literal text takes no longer for any line, so Python's own engine will do.
        return re.compile(re.escape(text).encode(), 0 if is_exact else re.IGNORECASE)


def regex_pattern(text: str, *, is_exact: bool) -> LinePattern:
    """Finds what the expression says, by RE2, which takes time in proportion to the lines."""
    _refuse_size("regex", text)
    pattern = _re2(f"(?m:{text})", is_exact=is_exact, field="regex")
    if pattern.search(b"", 0):
        raise Invalid(
            (Violation("regex", f"regex {text[:100]!r} matches an empty text, and so every line."),)
        )
    return pattern


def _refuse_size(field: str, text: str) -> None:
    if len(text) > MOST_PATTERN or "\n" in text or not _is_utf8(text):
        wanted = f"must be a text of one line, of {MOST_PATTERN} characters at most"
        raise Invalid((Violation(field, f"{field} {wanted}, not '{text[:40]!a}'."),))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _re2(text: str, *, is_exact: bool, field: str) -> LinePattern:
    try:
        re2: Any = import_module("re2")  # here, since it takes memory and few need it
    except ImportError as error:
        raise Unavailable(
            "Regular expressions need the package google-re2, which is not installed."
        ) from error
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    options.case_sensitive = is_exact
    options.max_mem = MOST_MEMORY
    try:
        return re2.compile(text.encode(), options)
    except re2.error as error:
        reason: str = error.args[0].decode(errors="replace")
        sentence = f"{field} {text[4:104]!r} cannot be understood: {reason[:200]}"
        raise Invalid((Violation(field, sentence),)) from error
