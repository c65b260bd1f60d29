"""Wildcards in places of buckets: `*` and `?` stay between slashes, `**` does not, `[ab]` is one of these.

What has such a name to the letter is meant first, so every object can be named. A place without wildcards is
given back as it is, and nobody is asked. Those of local paths are the shell's.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from trainshed.cli.failure import CommandFailed
from trainshed.cli.transfer import SCHEMES, is_in_bucket, parse
from trainshed.client.storage import StorageClient

_WILD = re.compile(r"[*?]|\[[!^]?[^/]+?\]")
_WORD = re.compile(r"(?<![^/])\*\*/|\*\*|\*|\?|\[[!^]?[^/]+?\]|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Named:
    """A place that was meant; that of a folder ends with a slash. `metadata` is the listing's entry of it."""

    place: str
    metadata: dict[str, Any] | None = None

    @property
    def is_folder(self) -> bool:
        return self.metadata is not None and "prefix" in self.metadata

    @property
    def is_object(self) -> bool:
        return self.metadata is not None and "prefix" not in self.metadata

    @property
    def size(self) -> int | None:
        return int(self.metadata["size"]) if self.metadata and self.is_object else None


def is_wild(place: str) -> bool:
    return is_in_bucket(place) and bool(_WILD.search(parse(place)[1]))


def meant(storage: StorageClient, places: Iterable[str], *, folders: bool) -> list[Named]:
    """All that the places stand for. Where folders are not asked for they are skipped, and told."""
    return [
        item
        for place in places
        for item in (_meant(storage, place, folders) if is_wild(place) else (Named(place),))
    ]


def _meant(storage: StorageClient, place: str, folders: bool) -> list[Named]:
    bucket, name = parse(place)
    if _is_there(storage, bucket, name, folders):
        return [Named(place)]
    root = f"{place[: len(SCHEMES[0])]}{bucket}/"
    matches = [
        Named(root + str(match.get("prefix") or match["name"]), match)
        for match in _matches(storage, bucket, "", name.split("/"))
    ]
    if not matches:
        raise CommandFailed(f"nothing matches {place}")
    chosen = [item for item in matches if folders or not item.is_folder]
    if not chosen:
        raise CommandFailed(f"only folders match {place}", [f"what is in them matches {place.rstrip('/')}/*"])
    for item in matches:
        if item.is_folder and not folders:
            click.echo(f"skipped {item.place}: a folder", err=True)
    return chosen


def _is_there(storage: StorageClient, bucket: str, name: str, folders: bool) -> bool:
    """An object of that very name, or, where they count, something below it."""
    folder = name.rstrip("/") + "/"
    return any(
        item.get("name") == name or (folders and str(item.get("prefix") or item["name"]).startswith(folder))
        for item in storage.objects(bucket, name.rstrip("/") if folders else name, "/")
    )


def _matches(storage: StorageClient, bucket: str, above: str, parts: list[str]) -> Iterator[dict[str, Any]]:
    """What fits below a prefix, part by part: of folders that do not fit nothing is listed."""
    while len(parts) > 1 and not _WILD.search(parts[0]):
        above += f"{parts[0]}/"
        parts = parts[1:]
    first, *rest = parts
    is_deep = "**" in first
    fits = re.compile(_pattern("/".join(parts) if is_deep else first), re.DOTALL).fullmatch
    for item in storage.objects(bucket, above + _plain(first), "" if is_deep else "/"):
        path = str(item.get("prefix") or item["name"])
        below = path[len(above) :].removesuffix("/") if "prefix" in item else path[len(above) :]
        if not below or not fits(below):  # a mark for the folder itself is not in it
            continue
        if is_deep or not rest or ("prefix" in item and rest == [""]):
            yield item
        elif "prefix" in item:
            yield from _matches(storage, bucket, path, rest)


def _plain(part: str) -> str:
    """What every name that fits begins with."""
    match = _WILD.search(part)
    return part[: match.start()] if match else part


def _pattern(text: str) -> str:
    return "".join(map(_word, _WORD.findall(text)))


def _word(word: str) -> str:
    match word:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if len(word) > 1:
            inner = word[1:-1]
            negated = inner[0] in "!^" and len(inner) > 1
            members = _members(inner[1:] if negated else inner)
            if not members:
                return "[^/]" if negated else "(?!)"
            return f"(?!/)[{'^' if negated else ''}{members}]"
        case _:
            return re.escape(word)


def _members(text: str) -> str:
    """Letters and spans of them, for a regular expression. A span that runs backwards holds nothing."""
    result = ""
    for item in re.findall(r".-.|.", text, re.DOTALL):
        if len(item) == 1:
            result += re.escape(item)
        elif item[0] <= item[2]:
            result += f"{re.escape(item[0])}-{re.escape(item[2])}"
    return result
