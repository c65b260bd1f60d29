"""`trainshed diff`: what is different between two jobs, in what was asked for and in their files.

Exit codes are those of diff(1): 0 the same, 1 different, 2 trouble. The names of the jobs are not compared.
"""

import difflib
import functools
import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import click

from trainshed.cli import words
from trainshed.cli.code import code_of, content, place
from trainshed.cli.complete import jobs
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import as_json, connected
from trainshed.cli.paint import Paint
from trainshed.client import Client, Json

LONGEST = 1 << 20  # bytes of a text whose lines are compared
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def _troubled(function: Callable[..., int]) -> Callable[..., int]:
    """Errors exit with 2, as 1 means that the jobs are different."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> int:
        try:
            return function(*args, **kwargs)
        except CommandFailed as failure:
            raise Misuse(failure.message, failure.details) from failure

    return wrapped


@click.command("diff", short_help="Compare two jobs: what was asked for, and their files.")
@click.argument("first", metavar="JOB1", shell_complete=jobs)
@click.argument("second", metavar="JOB2", shell_complete=jobs)
@as_json
@_troubled
@connected
def command(client: Client, first: str, second: str, as_json: bool) -> int:
    """Compare two jobs: what was asked for, and their files.

    Exit code, as of diff(1): 0 if they are the same, 1 if they are different, 2 for an error.

    \b
    Example:
      trainshed diff 1794763091358940188 digits
    """
    from trainshed.cli.find import find

    pair = find(client, first), find(client, second)
    fields = _fields(pair[0], pair[1])
    files = _files(client, pair[0], pair[1])
    if as_json:
        click.echo(json.dumps({"same": not (fields or files), "spec": fields, "files": files}, indent=2))
        return 1 if fields or files else 0
    paint = Paint.for_stdout()
    if fields:
        click.echo(paint("spec", "bold"))
    for field in fields:
        click.echo(_line(field, paint))
    for file in files:
        for line in _lines(client, pair, file):
            click.echo(paint(line, COLOURS.get(line[:1])))
    return 1 if fields or files else 0


def _fields(first: Json, second: Json) -> list[Json]:
    """What was asked for differently: fields by their paths."""
    old, new = (dict(_flat(_asked(job), "")) for job in (first, second))
    return [
        {"field": name, "from": old.get(name), "to": new.get(name)}
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]


def _asked(job: Json) -> Json:
    spec = {name: value for name, value in words.part(job, "jobSpec").items() if name != "code"}
    return {"labels": words.part(job, "labels"), **spec}


def _flat(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for name, inner in cast(Json, value).items():
            yield from _flat(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in cast(list[object], value)):
        for at, inner in enumerate(cast(list[object], value)):
            yield from _flat(inner, f"{path}[{at}]")
    elif value not in ({}, [], None):
        yield path, value


def _line(field: Json, paint: Paint) -> str:
    old, new = (None if field[side] is None else json.dumps(field[side]) for side in ("from", "to"))
    if old is None:
        return paint(f"+ {field['field']}: {new}", "green")
    if new is None:
        return paint(f"- {field['field']}: {old}", "red")
    return f"  {field['field']}: {paint(old, 'red')} -> {paint(new, 'green')}"


def _files(client: Client, first: Json, second: Json) -> list[Json]:
    """The files that are not the same in both, by path."""
    if code_of(first) == code_of(second):
        return []
    old, new = (
        {str(entry["path"]): entry for entry in client.manifest(code_of(job), place(job))}
        if code_of(job)
        else {}
        for job in (first, second)
    )
    return [
        {
            "path": path,
            "change": _change(old.get(path), new.get(path)),
            "from": old.get(path),
            "to": new.get(path),
        }
        for path in sorted({**old, **new})
        if old.get(path) != new.get(path)
    ]


def _change(old: Json | None, new: Json | None) -> str:
    if old is None:
        return "added"
    if new is None:
        return "removed"
    return "mode" if old["sha256"] == new["sha256"] else "changed"


def _lines(client: Client, pair: tuple[Json, Json], file: Json) -> Iterator[str]:
    old, new = file["from"], file["to"]
    names = f"a/{file['path']}" if old else "/dev/null", f"b/{file['path']}" if new else "/dev/null"
    if old and new and old["mode"] != new["mode"]:
        yield f"mode of {file['path']}: {old['mode']} -> {new['mode']}"
    if file["change"] == "mode":
        return
    sides = (old, new)
    sizes = [words.size(side["size"]) if side else "nothing" for side in sides]
    if any(side and side["size"] > LONGEST for side in sides):
        yield f"large files {names[0]} and {names[1]} differ ({sizes[0]}, {sizes[1]})"
        return
    texts = [_text(content(client, job, side)) if side else "" for job, side in zip(pair, sides, strict=True)]
    if texts[0] is None or texts[1] is None:
        yield f"binary files {names[0]} and {names[1]} differ ({sizes[0]}, {sizes[1]})"
        return
    old_lines, new_lines = (text.split("\n") for text in (texts[0], texts[1]))
    if not (texts[0] and texts[1]):
        yield f"{file['change']}: {file['path']}"
    for line in difflib.unified_diff(_ended(old_lines), _ended(new_lines), *names, lineterm=""):
        yield from line.split("\n")


def _ended(lines: list[str]) -> list[str]:
    """Lines without their ends; one that has none is marked as diff(1) marks it."""
    last = lines.pop()
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
