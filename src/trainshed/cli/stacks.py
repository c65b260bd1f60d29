"""`trainshed stacks`: where each replica of a running job is, the odd one out first to be seen."""

import json
from collections.abc import Iterator

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.cli.paint import Paint
from trainshed.client import Client, Json


@click.command("stacks", short_help="Show where each replica of a running job is.")
@job_argument
@click.option(
    "--replica", metavar="NAME", help="Only of this one, such as workerpool0-1; with all its threads."
)
@as_json
@connected
def command(client: Client, job: str, replica: str | None, as_json: bool) -> None:
    """Show where each replica of a running job is.

    The job goes on undisturbed. Replicas that are in the same place are put together; other programs than
    Python's are told by what they wait for.

    \b
    Example:
      trainshed stacks digits
      trainshed stacks digits --replica workerpool1-0
    """
    from trainshed.cli.find import find

    stacks = client.stacks(find(client, job, alive=True)["name"], replica)
    click.echo(json.dumps(stacks, indent=2) if as_json else drawn(stacks, threads=replica is not None))


def drawn(stacks: Json, *, threads: bool = False) -> str:
    paint = Paint.for_stdout()
    by_task = {str(part.get("task")): part for part in words.parts(stacks, "replicas")}
    parts: list[str] = []
    groups: list[Json] = words.parts(stacks, "groups")
    for group in groups:
        tasks = [str(task) for task in words.parts(group, "tasks")]
        singular, plural = ("waits", "wait") if group.get("waiting") else ("is", "are")
        verb = singular if len(tasks) == 1 else plural
        title = f"{paint(', '.join(tasks), 'bold')} {verb} in {group['place']}"
        parts.append("\n".join((title, *_replica(by_task[tasks[0]], paint, threads=threads))))
    shown = len(by_task)
    if shown < int(stacks.get("alive") or 0):
        parts.append(f"A sample of {shown} of {stacks['alive']} replicas; see another with --replica.")
    return "\n\n".join(parts)


def _replica(replica: Json, paint: Paint, *, threads: bool) -> Iterator[str]:
    processes: list[Json] = words.parts(replica, "processes")
    for process in processes:
        yield paint(f"  process {process['pid']}  {process['command']}  ({process['state']})", "dim")
        all_threads: list[Json] = words.parts(process, "threads")
        for thread in all_threads:
            if not (threads or thread.get("main")):
                continue
            if threads:
                waiting = ", waiting" if thread.get("waiting") else ""
                yield f"    thread {thread.get('name') or '?'}{waiting}"
            frames: list[Json] = words.parts(thread, "frames")
            for frame in frames:
                yield f"    {'  ' if threads else ''}{frame['function']} ({frame['file']}:{frame['line']})"
        if not threads and len(all_threads) > 1:
            more = "1 more thread" if len(all_threads) == 2 else f"{len(all_threads) - 1} more threads"
            yield paint(f"    and {more}: --replica {replica['task']} shows all", "dim")
    if replica.get("fault"):
        yield f"  {replica['fault']}"
