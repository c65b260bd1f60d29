"""`trainshed runtimes`: the environments jobs run in: see them, build one ahead, remove what nobody wants."""

import json
from datetime import UTC, datetime
from typing import cast

import click

from trainshed.cli import order, words
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json


@click.group("runtimes", short_help="See, build and remove the environments jobs run in.")
def command() -> None:
    """See, build and remove the environments jobs run in.

    \b
    Example:
      trainshed runtimes ls
      trainshed runtimes build trainshed/pytorch
      trainshed runtimes rm --unused
    """


@command.command("ls", short_help="List runtimes: built, being built, and those that could be.")
@as_json
@connected
def ls(client: Client, as_json: bool) -> None:
    """List runtimes: built, being built, and those that could be.

    \b
    Example:
      trainshed runtimes ls --json
    """
    found = client.runtimes()
    click.echo(json.dumps(found, indent=2) if as_json else drawn(found))


@command.command("build", short_help="Build a runtime before a job needs it, and say how it goes.")
@click.argument("name")
@click.option("--requirements", metavar="FILE", help="Packages to install on top of it.")
@as_json
@connected
def build(client: Client, name: str, requirements: str | None, as_json: bool) -> int:
    """Build a runtime before a job needs it, and say how it goes.

    One that is there already is left as it is. Ctrl-C stops watching, not building.

    \b
    Example:
      trainshed runtimes build trainshed/pytorch --requirements requirements.txt
    """
    last: Json = {}
    said = ""
    try:
        for last in client.built_runtime(name, order.requirements(requirements) if requirements else []):
            if last.get("message") and last.get("state") == "BUILDING" and last["message"] != said:
                said = str(last["message"])
                click.echo(said, err=True)
    except KeyboardInterrupt:
        click.echo("it goes on being built; see: trainshed runtimes ls", err=True)
        return 130
    if as_json:
        click.echo(json.dumps(last, indent=2))
    if last.get("state") == "READY":
        if not as_json:
            click.echo(f"{last['name']} is ready")
        return 0
    raise CommandFailed(str(last.get("message") or f"{name} was not built"), words.parts(last, "lines"))


@command.command("rm", short_help="Remove runtimes from the disk; they are built again when needed.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--unused", is_flag=True, help="Every one that no job wants which is not over.")
@as_json
@connected
def rm(client: Client, names: tuple[str, ...], unused: bool, as_json: bool) -> None:
    """Remove runtimes from the disk; they are built again when needed.

    NAME is a name, with or without its version, or the beginning of an id. One that a job wants which is not
    over is refused.

    \b
    Example:
      trainshed runtimes rm trainshed/jax
    """
    if bool(names) == unused:
        raise Misuse("name the runtimes to remove, or say --unused")
    removed = client.prune_runtimes() if unused else _removed(client, names)
    if as_json:
        click.echo(json.dumps(removed, indent=2))
        return
    for item in removed:
        click.echo(f"removed {_title(item)} ({words.size(item.get('sizeBytes'))})")
    if not removed:
        click.echo("nothing to remove", err=True)


def drawn(found: list[Json]) -> str:
    from trainshed.cli.paint import Paint
    from trainshed.cli.table import table

    paint = Paint.for_stdout()
    now = datetime.now(UTC)
    colours = {"READY": "green", "BUILDING": "yellow", "FAILED": "red", "ABSENT": "dim"}
    rows = [
        [
            str(item.get("id", ""))[:8],
            str(item.get("name", "")),
            paint(str(item.get("state", "")), colours.get(str(item.get("state")))),
            str(item.get("python", "")),
            words.size(item["sizeBytes"]) if item.get("sizeBytes") else "",
            words.age(item.get("lastUseTime"), now),
            _warmth(item),
            ", ".join(_on_top(item)),
            str(item.get("message") or _kiln(item).get("message") or ""),
        ]
        for item in found
    ]
    return table(["ID", "NAME", "STATE", "PYTHON", "SIZE", "UNUSED FOR", "WARM", "ON TOP", "SAYS"], rows)


def _kiln(one: Json) -> Json:
    return cast("Json", one.get("warm") or {})


def _warmth(one: Json) -> str:
    """What an interpreter kept warm costs; how it stands where it is not warm."""
    kiln = _kiln(one)
    state = str(kiln.get("state", "")).lower()
    return words.size(kiln.get("memoryBytes")) if state == "warm" else state


def _on_top(one: Json) -> list[str]:
    """What was laid on the named runtime: packages by their file's name and the beginning of their hash."""
    if not (one.get("below") or _is_plain(one)):
        return []
    found: list[Json] = words.parts(one, "packages")
    packages = [f"{str(p['uri']).rpartition('/')[2]} ({str(p['sha256'])[:8]})" for p in found]
    return [*packages, *map(str, words.parts(one, "requirements"))]


def _is_plain(one: Json) -> bool:
    return one.get("name") == "trainshed/python"


def _title(one: Json) -> str:
    count = len(_on_top(one))
    return str(one.get("name")) + (f" with {count} on top" if count else "")


def _removed(client: Client, names: tuple[str, ...]) -> list[Json]:
    there = [
        runtime for runtime in client.runtimes() if runtime.get("id") and runtime.get("state") != "ABSENT"
    ]
    chosen: dict[str, Json] = {}
    for name in names:
        found = [item for item in there if _is_called(item, name)]
        if not found:
            raise CommandFailed(f"no runtime {name!r} is built", ["trainshed runtimes ls lists them"])
        chosen.update((str(item["id"]), item) for item in found)
    # What is laid on another goes first, so that each is removed once and told.
    for one in sorted(chosen.values(), key=lambda one: not one.get("below")):
        client.remove_runtime(str(one["id"]))
    return list(chosen.values())


def _is_called(one: Json, name: str) -> bool:
    full = str(one.get("name"))
    return name in (full, full.partition(":")[0]) or (len(name) >= 4 and str(one["id"]).startswith(name))
