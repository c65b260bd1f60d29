"""`trainshed why`: the reasons as a tree, when it may start, and what would start it now."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.cli.paint import Paint
from trainshed.client import Client, Json

SOON = timedelta(seconds=1)  # what is nearer than that is now


@click.command("why", short_help="Say why a job waits, what would start it now, and when it may start.")
@job_argument
@as_json
@connected
def command(client: Client, job: str, as_json: bool) -> None:
    """Say why a job waits, what would start it now, and when it may start.

    Each change it names has been tried on the queue as it is. Of a job that does not wait it says where
    it stands: what has not started, when the next restart comes, why it failed. `submit --dry-run` says
    the same of a job before it is submitted.

    \b
    Example:
      trainshed why digits
    """
    from trainshed.cli.find import find

    answer = client.why(find(client, job)["name"])
    click.echo(json.dumps(answer, indent=2) if as_json else drawn(answer))


def drawn(answer: Json) -> str:
    """The explanation on one screen; of a job that is not submitted, the same."""
    paint = Paint.for_stdout()
    parts = [_first(answer, paint), "\n".join(_tree(words.part(answer, "because"), paint))]
    eta = words.part(answer, "eta")
    if eta and answer.get("would") != "start now":
        parts.append("\n".join((paint("When:", "bold"), *_when(eta))))
    changes: list[Json] = words.parts(answer, "changes")
    if changes:
        how = "; a field of its own by submitting it again:" if answer.get("name") else ":"
        parts.append("\n".join((paint("What would start it now", "bold") + how, *_changes(changes, paint))))
    elif answer.get("would") == "wait":
        parts.append("No single change would start it now.")
    return "\n\n".join(parts)


def _first(answer: Json, paint: Paint) -> str:
    name = paint(str(answer.get("displayName", "")), "bold")
    place = f"place {answer.get('position')} of {answer.get('queueLength')} in the queue"
    if not answer.get("name"):
        waits = f"would wait, {place}" if answer.get("position") else "would wait"
        would = "would start now" if answer.get("would") == "start now" else waits
        return f"{name} is accepted and {would}. Nothing was submitted."
    state = paint.state(words.state(answer.get("state")))
    return f"{name} ({words.identity(answer)}) is {state}{f', {place}' if answer.get('position') else ''}."


def _tree(ground: Json, paint: Paint) -> Iterator[str]:
    reason = paint(f"[{ground.get('reason', '')}]", "dim")
    yield f"{ground.get('message', '')} {reason}"
    yield from _branches(words.parts(ground, "because"), "")
    if ground.get("remedy"):
        yield str(ground["remedy"])


def _branches(grounds: list[Json], indent: str) -> Iterator[str]:
    for at, ground in enumerate(grounds):
        last = at == len(grounds) - 1
        yield f"{indent}{'└─' if last else '├─'} {ground.get('message', '')}"
        yield from _branches(words.parts(ground, "because"), indent + ("   " if last else "│  "))


def _when(eta: Json) -> Iterator[str]:
    """The most useful first: what is likely, then the bounds."""
    now = datetime.now(UTC)
    if (likely := words.range_of(eta, now)) is not None:
        first, last = words.clock(eta["likelyFrom"]), words.clock(eta["likelyTo"])
        yield f"  {'likely':<16} {likely}, {first} to {last}"
    rows = (("likely", "likely"), ("earliest", "at the earliest"), ("latest", "at the latest"))
    for key, title in rows:
        at = words.moment(eta.get(key))
        if at is not None:
            left = at - now
            when = "now" if left < SOON else f"in {words.span(left)}, {words.clock(eta[key])}"
            yield f"  {title:<16} {when}"
    yield f"  {eta.get('basis', '')}"


def _changes(changes: list[Json], paint: Paint) -> Iterator[str]:
    for number, change in enumerate(changes, 1):
        yield f"  {number}. {change.get('message', '')}"
        if change.get("field") == "cancel":
            command = f"trainshed cancel {change.get('job', '')}"
        else:
            command = f"{change.get('field', '')}: {change.get('to', '')}"
        yield f"     {paint(command, 'dim')}"
