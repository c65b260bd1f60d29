"""How severe a line says it is: by the words that logging libraries put in front of a message. Pure.

A line of a program has no severity of its own. `wire/log_lines.py` renders what it says; a search for lines
of a severity looks for the same words. Words are looked for near the start of a line only.
"""

import re

# Each level with the words for it, from the least to the most severe.
LEVELS: tuple[tuple[str, str], ...] = (
    ("DEBUG", r"DEBUG|TRACE"),
    ("INFO", r"INFO"),
    ("WARNING", r"WARN|WARNING|[A-Z]\w*Warning"),
    ("ERROR", r"ERROR|[A-Z]\w*Error|[A-Z]\w*Exception|Traceback"),
    ("CRITICAL", r"CRITICAL|FATAL|EMERGENCY|PANIC"),
)
NEAR = 120  # characters from the start of a line

_CAPITAL = re.compile("[A-Z]")  # every word begins with one: most lines need no closer look
_WORD = re.compile(
    rf"\b(?=[A-Z])(?:{'|'.join(rf'(?P<{level}>{words})' for level, words in reversed(LEVELS))})\b"
)
_JSON = re.compile(r'"(?:severity|level|levelname|level_name)"\s*:\s*"(\w+)"', re.IGNORECASE)
_SHORT = {"WARN": "WARNING", "FATAL": "CRITICAL", "TRACE": "DEBUG"}


def severity_said(text: str) -> str:
    """DEBUG to CRITICAL; DEFAULT where the line says nothing."""
    start = text[:NEAR]
    if start.startswith("{"):
        match = _JSON.search(text[: 10 * NEAR])
        word = match[1].upper() if match else ""
        word = _SHORT.get(word, word)
        return word if word in dict(LEVELS) else "DEFAULT"
    match = _WORD.search(start) if _CAPITAL.search(start) else None
    return str(match.lastgroup) if match else "DEFAULT"


def severity_expression(least: str) -> str:
    """A regular expression for lines that say this severity or a higher one. KeyError where it is none."""
    names = [level for level, _ in LEVELS]
    if least not in names:
        raise KeyError(least)
    chosen = LEVELS[names.index(least) :]
    words = "|".join(words for _, words in chosen)
    json_words = "|".join(
        (*(level for level, _ in chosen), *(k for k, v in _SHORT.items() if v in dict(chosen)))
    )
    plain = rf"^(?:[^{{\n].{{0,{NEAR}}}?)?\b(?:{words})\b"
    return rf'(?:{plain}|(?i:"(?:severity|level|levelname|level_name)"\s*:\s*"(?:{json_words})"))'
