"""`trainshed top`: what each replica uses and how far its job is, live on a terminal, once in a pipe."""

import json
from collections.abc import Iterator
from typing import Any

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json

EVERY = 2.0  # seconds between pictures: the server looks no more often
BARS = "▁▂▃▄▅▆▇█"
HEADERS = [
    *(
        "JOB",
        "NAME",
        "REPLICA",
        "CPU",
        "MEMORY",
        "PROCESSES",
        "THREADS",
        "READ/S",
        "WRITE/S",
        "IN/S",
        "OUT/S",
    ),
    *("GPU", "GPU MEMORY", "PROGRESS", "VALUES", "CPU, LAST MINUTE"),
]


@click.command("top", short_help="Show what each replica uses and how far it is, live.")
@click.argument("job", required=False)
@click.option("--once", is_flag=True, help="Show it once. This is also what a pipe gets.")
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(0.2),
    default=EVERY,
    show_default=True,
    help="How often to show it anew.",
)
@as_json
@connected
def command(client: Client, *, job: str | None, once: bool, every: float, as_json: bool) -> None:
    """Show what each replica uses and how far it is, live.

    Of all jobs that run, or of one JOB: then also how it was before it ended. CPU is in cores, memory that of
    the whole process tree. Progress is what a program reports: `from trainshed import report;
    report.step(3, total=100, loss=0.5)`, or a line `TRAINSHED_STEP 3/100 loss=0.5` on its stdout.

    \b
    Example:
      trainshed top digits --once
    """
    import sys

    from trainshed.cli.find import find

    custom_job = find(client, job) if job is not None else None
    if as_json:
        click.echo(json.dumps(seen(client, custom_job), indent=2))
        return
    if once or not sys.stdout.isatty():
        click.echo(drawn(seen(client, custom_job), sparks=sys.stdout.isatty()))
        return
    from trainshed.cli.looks import looks
    from trainshed.cli.paint import clean, draw

    draw(sys.stdout, "\x1b[2J")
    for _ in looks(client, every):
        picture = drawn(seen(client, custom_job), sparks=True)
        # Home, the picture with the rest of each line erased, and the rest of the screen erased.
        lines = "".join(f"{clean(line)}\x1b[K\n" for line in _fitting(picture))
        draw(sys.stdout, f"\x1b[H{lines}\x1b[J")


def _fitting(picture: str) -> list[str]:
    """As many lines as the terminal has: one more would scroll the first away."""
    import shutil

    lines, room = picture.splitlines(), shutil.get_terminal_size().lines - 1
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"and {len(lines) - room + 1} more; name a JOB to see one alone"]


def seen(client: Client, job: Json | None) -> Json:
    """What the server says: of all that runs, or of the one job in the same words."""
    if job is None:
        return client.usage()
    metrics = client.metrics(job["name"], window=60)
    return {"jobs": [{key: job.get(key) for key in ("name", "displayName", "state")} | metrics]}


def drawn(usage: Json, *, sparks: bool) -> str:
    from trainshed.cli.table import table

    rows = [row for job in words.parts(usage, "jobs") for row in _rows(job, sparks)]
    return table(HEADERS, rows, whole=not sparks) if rows else "nothing runs"


def _rows(job: Json, sparks: bool) -> Iterator[list[str]]:
    tasks: dict[str, dict[str, list[Any]]] = {}
    for part in words.parts(job, "series"):
        tasks.setdefault(str(part["task"]), {})[str(part["name"])] = part["points"]
    head = [words.identity(job), str(job.get("displayName") or "")]
    progress = words.part(job, "progress")
    for task, series in (tasks or {str(progress.get("task") or "-"): {}}).items():
        last = {name: points[-1][1] for name, points in series.items() if points}
        gpus = [name for name in last if name.startswith("gpu") and not name.startswith("gpu_memory")]
        mine = progress.get("task") == task
        yield [
            *head,
            task,
            f"{last['cpu']:.2f}" if "cpu" in last else "",
            words.size(last["memory"]) if "memory" in last else "",
            *(f"{last[name]:.0f}" if name in last else "" for name in ("processes", "threads")),
            *(
                words.size(last[name]) if last.get(name) else ""
                for name in ("disk_read", "disk_write", "network_in", "network_out")
            ),
            " ".join(f"{last[name] * 100:.0f}%" for name in gpus),
            " ".join(words.size(last.get(f"gpu_memory{name[3:]}")) for name in gpus),
            words.progress(progress) if mine else "",
            values(progress) if mine else "",
            spark([point[1] for point in series.get("cpu", [])]) if sparks else "",
        ]


def values(progress: Json) -> str:
    some = list(words.part(progress, "values").items())[:4]
    return " ".join(f"{name}={value if isinstance(value, str) else f'{value:.4g}'}" for name, value in some)


def spark(numbers: list[float]) -> str:
    """A line of bars, from nothing to the most there was."""
    most = max(numbers, default=0.0)
    if most <= 0:
        return BARS[0] * len(numbers)
    return "".join(BARS[min(7, int(number / most * 7.999))] for number in numbers)
