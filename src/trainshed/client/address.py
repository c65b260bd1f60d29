"""Paths and queries of requests. What needs no quoting needs no import: a person waits for a submit."""

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = {safe: dict.fromkeys(map(ord, "-._~" + safe)) for safe in ("", "/")}


def query(values: "Mapping[str, object]") -> str:
    given = {name: value for name, value in values.items() if value not in (None, "")}
    if not given:
        return ""
    if all(_is_plain(str(value)) for value in given.values()):
        return "?" + "&".join(f"{name}={value}" for name, value in given.items())
    from urllib.parse import urlencode

    return f"?{urlencode(given, errors='surrogateescape')}"


def _is_plain(text: str, safe: str = "") -> bool:
    return text.isascii() and text.translate(_PLAIN[safe]).isalnum()


def quoted(text: str, safe: str = "") -> str:
    """The text as part of a path; what needs no quoting needs no import either."""
    if _is_plain(text, safe):
        return text
    from urllib.parse import quote

    return quote(text, safe=safe, errors="surrogateescape")
