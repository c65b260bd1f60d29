"""`fields=items(name,size),nextPageToken`: cuts an answer to the given fields. Unknown names are ignored."""

from typing import Any, cast

from trainshed.core.errors import Invalid, Violation

_DEEPEST = 20
_LONGEST = 8192

Wanted = dict[str, Any]  # names, each with the names inside; empty: everything


def partial(answer: dict[str, Any], fields: str) -> dict[str, Any]:
    """The answer, cut to the fields; the whole answer where none are given."""
    if not fields or fields == "*":
        return answer
    if len(fields) > _LONGEST:
        raise _wrong(f"may have at most {_LONGEST} characters")
    wanted, rest = _names(fields, 0)
    if rest:
        raise _wrong(f"is not understood from '{rest[:40]}' on")
    return _cut(answer, wanted)


def _names(text: str, depth: int) -> tuple[Wanted, str]:
    """The names up to a closing bracket or the end, and the remaining text."""
    if depth > _DEEPEST:
        raise _wrong("goes too deep")
    wanted: Wanted = {}
    while text:
        end = next((at for at, letter in enumerate(text) if letter in ",()/"), len(text))
        name, text = text[:end].strip(), text[end:]
        inside: Wanted = {}
        if text.startswith("("):
            inside, text = _names(text[1:], depth + 1)
            if not text.startswith(")"):
                raise _wrong("has a bracket that is not closed")
            text = text[1:]
        elif text.startswith("/"):
            inside, text = _step(text[1:], depth + 1)
        if name:
            wanted[name] = inside if not wanted.get(name) else {**wanted[name], **inside}
        if not text.startswith(","):
            break
        text = text[1:]
    return wanted, text


def _step(text: str, depth: int) -> tuple[Wanted, str]:
    """One name after a slash, with its nested names."""
    if depth > _DEEPEST:
        raise _wrong("goes too deep")
    end = next((at for at, letter in enumerate(text) if letter in ",()/"), len(text))
    name, text = text[:end].strip(), text[end:]
    inside: Wanted = {}
    if text.startswith("/"):
        inside, text = _step(text[1:], depth + 1)
    elif text.startswith("("):
        inside, text = _names(text[1:], depth + 1)
        text = text.removeprefix(")")
    return {name: inside}, text


def _cut(value: Any, wanted: Wanted) -> Any:
    if not wanted or "*" in wanted:
        return value
    if isinstance(value, list):
        return [_cut(item, wanted) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: _cut(members[name], inside) for name, inside in wanted.items() if name in members}
    return value


def _wrong(what: str) -> Invalid:
    return Invalid((Violation("fields", f"The field mask {what}."),))
