"""Where an object's bytes lie below its bucket's folder, so that a person finds them by name. Pure.

`models/v1/model.pt` is the file of that name. A part that a file cannot be called is written with percent
signs, as in addresses: `..` is `%2E%2E`, nothing (as in `a//b`) is `%`, and a percent sign itself is `%25`;
so two names never meet in one place and none leads outside. Names that are too long for a file have no
place: their bytes are kept by number.
"""

LONGEST_PART = 255  # bytes; what file systems take
_ESCAPED = {letter: f"%{letter:02X}" for letter in (*range(32), 127, ord("%"))}


def place_of(name: str) -> str | None:
    """The path below the bucket's folder, or None where no file can be called so."""
    parts = [_part(part) for part in name.split("/")]
    if any(len(part.encode()) > LONGEST_PART for part in parts):
        return None
    return "/".join(parts)


def name_of(place: str) -> str | None:
    """The name whose place that is; None if no object can have put it there."""
    try:
        name = "/".join(_unescaped(part) for part in place.split("/"))
        return name if place_of(name) == place else None
    except ValueError:  # it has no such escapes, or is no UTF-8
        return None


def parents(place: str) -> list[str]:
    """The folders above a place, the nearest first."""
    result: list[str] = []
    while "/" in place:
        place = place.rpartition("/")[0]
        result.append(place)
    return result


def _part(part: str) -> str:
    if part in ("", ".", ".."):
        return part.replace(".", "%2E") or "%"
    return part.translate(_ESCAPED)


def _unescaped(part: str) -> str:
    first, *others = part.split("%")
    if part == "%":
        return ""
    return first + "".join(chr(int(other[:2], 16)) + other[2:] for other in others)
