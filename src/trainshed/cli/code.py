"""`trainshed code`: the exact files a job was submitted with, back from the server.

What comes is checked against its hash before it gets its name, and nothing is written outside of the folder,
whatever the server says its files are called.
"""

import hashlib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.cli.paint import harmless
from trainshed.client import Client, Interrupted, Json
from trainshed.client.code import LINK, PROGRAM, identity

TRIES = 3  # for one file, over connections that break off


@click.command("code", short_help="Fetch the files a job was submitted with.")
@job_argument
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="Fetch nothing: list mode, size and path of each file.")
@click.option("--force", is_flag=True, help="Write into a folder that is not empty; its other files stay.")
@as_json
@connected
def command(client: Client, job: str, folder: Path | None, listed: bool, force: bool, as_json: bool) -> int:
    """Fetch the files a job was submitted with.

    They are written to DIR, by default a new folder here named after the job's id, byte for byte as they
    were sent. Exit code: 0, or 1 for an error.

    \b
    Example:
      trainshed code digits ./then
      trainshed code digits --list
    """
    from trainshed.cli.find import find

    custom_job = find(client, job)
    code = code_of(custom_job)
    if not code:
        raise CommandFailed(
            f"{words.identity(custom_job)} was submitted without a folder: it has no files to fetch"
        )
    entries = client.manifest(code, place(custom_job))
    if listed:
        click.echo(json.dumps({"code": code, "files": entries}, indent=2) if as_json else _table(entries))
        return 0
    folder = folder or Path(words.identity(custom_job))
    _fetch(client, custom_job, entries, _prepared(folder, force=force))
    size = sum(int(entry["size"]) for entry in entries)
    if as_json:
        summary = {"code": code, "folder": str(folder.absolute()), "files": len(entries), "size": size}
        click.echo(json.dumps(summary, indent=2))
    else:
        click.echo(folder)
        click.echo(f"fetched {len(entries)} files, {words.size(size)}", err=True)
    return 0


def code_of(job: Json) -> str:
    """The id of a job's folder; "" where it has none."""
    return str(words.part(job, "jobSpec").get("code") or "")


def place(job: Json) -> str:
    """The path of a job's project and location."""
    return "/v1/" + str(job["name"]).partition("/customJobs/")[0]


def content(client: Client, job: Json, entry: Json) -> bytes:
    """One file, whole, as it was sent."""
    data = io.BytesIO()
    _copy(client, job, entry, data)
    return data.getvalue()


def _copy(client: Client, job: Json, entry: Json, out: BinaryIO) -> None:
    for attempt in range(TRIES):
        out.seek(0)
        out.truncate()
        seen = hashlib.sha256()
        try:
            for piece in client.content(code_of(job), entry["sha256"], place(job)):
                seen.update(piece)
                out.write(piece)
        except Interrupted:
            if attempt == TRIES - 1:
                raise
            continue
        if seen.hexdigest() == entry["sha256"]:
            return
    raise CommandFailed(f"{entry['path']} does not come as it was sent: the server's copy is damaged")


def _table(entries: Sequence[Json]) -> str:
    width = max((len(str(entry["size"])) for entry in entries), default=0)
    lines = [f"{entry['mode']} {entry['size']:>{width}} {entry['path']}" for entry in entries]
    return "\n".join(map(harmless, lines) if sys.stdout.isatty() else lines)


def _prepared(folder: Path, *, force: bool) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not force:
            raise CommandFailed(
                f"{folder} is not empty", ["name another folder, or write into it with --force"]
            )
    except OSError as error:
        raise CommandFailed(f"cannot write to {folder}: {error.strerror}") from error
    return folder


def _fetch(client: Client, job: Json, entries: Sequence[Json], folder: Path) -> None:
    if identity(entries) != code_of(job):
        raise CommandFailed("the server's list of files is not the one the job was submitted with")
    # Links last: so no file is ever written through one of them.
    for entry in sorted(entries, key=lambda entry: entry["mode"] == LINK):
        try:
            made = _place_for(folder, entry)
            if entry["mode"] == LINK:
                made.symlink_to(os.fsdecode(content(client, job, entry)))
            else:
                with made.open("xb") as out:
                    _copy(client, job, entry, out)
                made.chmod(0o755 if entry["mode"] == PROGRAM else 0o644)
            made.replace(folder / entry["path"])
        except OSError as error:
            raise CommandFailed(f"cannot write {folder / entry['path']}: {error.strerror}") from error


def _place_for(folder: Path, entry: Json) -> Path:
    """Where a file is made before it gets its name, in the folder it belongs to."""
    parts = str(entry["path"]).split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in entry["path"]:
        raise CommandFailed(f"the server names a file {entry['path']!r}, which is no path inside a folder")
    parent = folder
    for part in parts[:-1]:
        parent = parent / part
        if parent.is_symlink():
            raise CommandFailed(f"{parent} is a link; fetch into an empty folder")
        parent.mkdir(exist_ok=True)
    made = parent / f".{entry['sha256']}.part"
    made.unlink(missing_ok=True)
    return made
