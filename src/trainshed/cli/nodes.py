"""`trainshed nodes`: the machines, what is free of them, and which replica holds the rest."""

import json

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json

HEADERS = ["NODE", "RUNS", "CPUS FREE", "MEMORY FREE", "GPUS FREE", "CPUS BUSY", "MEMORY USED", "DISK USED"]
HOLDERS = ["JOB", "NAME", "REPLICA", "NODE", "CPUS", "USES", "MEMORY", "USES", "GPUS"]


@click.command("nodes", short_help="Show the machines: what is free, and who holds the rest.")
@as_json
@connected
def command(client: Client, as_json: bool) -> None:
    """Show the machines: what is free, and who holds the rest.

    Free is what no job was given. Busy and used is what the machine does, whichever program does it.

    \b
    Example:
      trainshed nodes
    """
    nodes = client.machines().nodes()
    click.echo(json.dumps(nodes, indent=2) if as_json else drawn(nodes))


def drawn(nodes: list[Json]) -> str:
    from trainshed.cli.table import table

    if not nodes:
        return "no machine is connected"
    holders = [row for node in nodes for row in _holders(node)]
    parts = [table(HEADERS, [_node(node) for node in nodes])]
    parts += [table(HOLDERS, holders)] if holders else ["nothing is held"]
    return "\n\n".join(parts)


def _node(node: Json) -> list[str]:
    capacity, free, use = (words.part(node, name) for name in ("capacity", "free", "use"))
    cpus, name = words.part(use, "cpus"), str(node.get("gpuName") or "")
    gpus = f"{free.get('gpus')} of {capacity.get('gpus')} {name}".strip() if capacity.get("gpus") else ""
    return [
        str(node.get("name", "")),
        ", ".join(map(str, words.parts(node, "backends"))),
        f"{words.number(free.get('cpus'))} of {words.number(capacity.get('cpus'))}",
        _of(free.get("memoryBytes"), capacity.get("memoryBytes")),
        gpus,
        f"{words.number(cpus.get('used'))} of {words.number(cpus.get('size'))}" if cpus else "",
        *(
            _of(words.part(use, part).get("usedBytes"), words.part(use, part).get("sizeBytes"))
            for part in _DISKS
        ),
    ]


_DISKS = ("memory", "disk")


def _of(part: object, whole: object) -> str:
    return f"{words.size(part)} of {words.size(whole)}" if whole is not None else ""


def _holders(node: Json) -> list[list[str]]:
    return [
        [
            words.identity({"name": holder.get("job", "")}),
            str(holder.get("displayName", "")),
            str(holder.get("task", "")),
            str(node.get("name", "")),
            words.number(holder.get("cpus")),
            words.number(holder.get("cpusUsed")),
            words.size(holder.get("memoryBytes")),
            words.size(holder["memoryBytesUsed"]) if "memoryBytesUsed" in holder else "",
            " ".join(map(str, words.parts(holder, "gpus"))),
        ]
        for holder in words.parts(node, "holders")
    ]
