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
    runtimes = client.runtimes().all()
    click.echo(json.dumps(runtimes, indent=2) if as_json else drawn(runtimes))


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
    message = ""
    try:
        for last in client.runtimes().built(name, order.requirements(requirements) if requirements else []):
            if last.get("message") and last.get("state") == "BUILDING" and last["message"] != message:
                message = str(last["message"])
                click.echo(message, err=True)
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
    removed = client.runtimes().prune() if unused else _removed(client, names)
    if as_json:
        click.echo(json.dumps(removed, indent=2))
        return
    for item in removed:
        click.echo(f"removed {_title(item)} ({words.size(item.get('sizeBytes'))})")
    if not removed:
        click.echo("nothing to remove", err=True)


def drawn(runtimes: list[Json]) -> str:
    from trainshed.cli.paint import Paint
    from trainshed.cli.table import table

    paint = Paint.for_stdout()
    now = datetime.now(UTC)
    colours = {"READY": "green", "BUILDING": "yellow", "FAILED": "red", "ABSENT": "dim"}
    rows = [
        [
            str(runtime.get("id", ""))[:8],
            str(runtime.get("name", "")),
            paint(str(runtime.get("state", "")), colours.get(str(runtime.get("state")))),
            str(runtime.get("python", "")),
            words.size(runtime["sizeBytes"]) if runtime.get("sizeBytes") else "",
            words.age(runtime.get("lastUseTime"), now),
            _warm_memory(runtime),
            ", ".join(_on_top(runtime)),
            str(runtime.get("message") or _warm(runtime).get("message") or ""),
        ]
        for runtime in runtimes
    ]
    return table(["ID", "NAME", "STATE", "PYTHON", "SIZE", "UNUSED FOR", "WARM", "ON TOP", "SAYS"], rows)


def _warm(runtime: Json) -> Json:
    return cast("Json", runtime.get("warm") or {})


def _warm_memory(runtime: Json) -> str:
    """The memory of the warm interpreter; its state where it is not warm."""
    warm = _warm(runtime)
    state = str(warm.get("state", "")).lower()
    return words.size(warm.get("memoryBytes")) if state == "warm" else state


def _on_top(runtime: Json) -> list[str]:
    """What is installed on top of the named runtime: packages by file name and hash, and requirements."""
    if not (runtime.get("below") or _is_plain(runtime)):
        return []
    packages: list[Json] = words.parts(runtime, "packages")
    files = [f"{str(p['uri']).rpartition('/')[2]} ({str(p['sha256'])[:8]})" for p in packages]
    return [*files, *map(str, words.parts(runtime, "requirements"))]


def _is_plain(runtime: Json) -> bool:
    return runtime.get("name") == "trainshed/python"


def _title(runtime: Json) -> str:
    count = len(_on_top(runtime))
    return str(runtime.get("name")) + (f" with {count} on top" if count else "")


def _removed(client: Client, names: tuple[str, ...]) -> list[Json]:
    runtimes = client.runtimes().all()
    built = [runtime for runtime in runtimes if runtime.get("id") and runtime.get("state") != "ABSENT"]
    chosen: dict[str, Json] = {}
    for name in names:
        matches = [runtime for runtime in built if _is_called(runtime, name)]
        if not matches:
            raise CommandFailed(f"no runtime {name!r} is built", ["trainshed runtimes ls lists them"])
        chosen.update((str(runtime["id"]), runtime) for runtime in matches)
    # Removing a runtime removes those built on top of it: remove and report these first.
    for runtime in sorted(chosen.values(), key=lambda runtime: not runtime.get("below")):
        client.runtimes().remove(str(runtime["id"]))
    return list(chosen.values())


def _is_called(runtime: Json, name: str) -> bool:
    full = str(runtime.get("name"))
    return name in (full, full.partition(":")[0]) or (len(name) >= 4 and str(runtime["id"]).startswith(name))
