"""`trainshed show`: one job on one screen, what matters most first."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import cast

import click

from trainshed.cli import words
from trainshed.cli.failure import Misuse
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.cli.paint import Paint
from trainshed.client import Client, Json

LAST_EVENTS = 8
ROLES = ("primary", "workers", "servers", "evaluator")


@click.command("show", short_help="Show everything about a job: why it waits, how it runs, why it failed.")
@job_argument
@click.option("--env", is_flag=True, help="Only the variables each replica is given.")
@click.option("--replica", metavar="NAME", help="With --env: only of this one, such as workerpool0-1.")
@as_json
@connected
def command(client: Client, job: str, env: bool, replica: str | None, as_json: bool) -> None:
    """Show everything about a job: why it waits, how it runs, why it failed.

    \b
    Example:
      trainshed show digits
      trainshed show digits --env --replica workerpool0-0
    """
    from trainshed.cli.earlier_runs import earlier_runs
    from trainshed.cli.find import find

    if replica and not env:
        raise Misuse("--replica goes with --env; a replica's lines: trainshed logs JOB --replica NAME")
    custom_job = find(client, job)
    if env:
        from trainshed.cli.environment import environment_text

        click.echo(environment_text(client.environment(custom_job["name"], replica), as_json=as_json))
        return
    status = client.status(custom_job["name"])
    events = client.events(custom_job["name"])
    runs = earlier_runs(client, custom_job["name"], status)
    if as_json:
        costs = client.costs_of(custom_job["name"])
        whole = {"job": custom_job, "status": status, "events": events, "costs": costs}
        click.echo(json.dumps(whole | ({"earlierRuns": runs} if runs else {}), indent=2))
        return
    results = ""
    if words.part(words.part(custom_job, "jobSpec"), "baseOutputDirectory"):
        from trainshed.cli.results import results as of_job

        results = of_job(client, custom_job)
    from trainshed.cli.costs import sentence

    summary = _summary(custom_job, status, results, sentence(client.costs_of(custom_job["name"])))
    click.echo("\n\n".join(filter(None, (summary, *_parts(custom_job, status, events, runs)))))


_STANDINGS = {
    "GUARANTEED": "guaranteed: within what its share has",
    "BORROWED": "borrowed: it is stopped where another share wants its own back",
    "SPOT": "spot: it is the first to be stopped",
}


def _summary(job: Json, status: Json, results: str = "", cost: str = "") -> str:
    """The lines of `Word  value`; what there is nothing to say about is left out."""
    paint = Paint.for_stdout()
    lines = [
        f"{paint(f'{word:<9}', 'dim')} {value}" if word else f"{'':<9} {value}"
        for word, value in _facts(job, status, paint, results, cost)
        if value
    ]
    return "\n".join(line.replace("\n", f"\n{'':<10}") for line in lines)  # no value makes a line of its own


def _facts(job: Json, status: Json, paint: Paint, results: str, cost: str) -> Iterator[tuple[str, str]]:
    spec = words.part(job, "jobSpec")
    yield "Job", f"{paint(str(job.get('displayName', '')), 'bold')} ({words.identity(job)})"
    attempt = status.get("attempt") or 0
    state = paint.state(words.state(status.get("state") or job.get("state")))
    position = f", place {status['position']} in the queue" if status.get("position") else ""
    yield "State", state + (f", attempt {attempt}" if attempt else "") + position
    yield "Stands", _STANDINGS.get(str(status.get("standing")), "")
    waiting = words.part(status, "waiting")
    if waiting:
        yield "Waits", f"{waiting.get('message', '')} [{waiting.get('reason', '')}]"
        yield "Remedy", str(waiting.get("remedy") or "")
    hang = words.part(status, "hang")
    if hang:
        yield "Hang", f"{paint(str(hang.get('message', '')), 'yellow')} [HANG_SUSPECTED]"
        yield "", f"where it is now: trainshed stacks {words.identity(job)}"
    failure = words.part(status, "failure")
    if failure:
        yield "Failure", f"{paint(str(failure.get('message', '')), 'red')} [{failure.get('reason', '')}]"
        verdict = words.part(failure, "verdict")
        task = verdict.get("task") or failure.get("task")
        yield from _verdict(verdict, paint)
        if task:
            yield "", f"its log: trainshed logs {words.identity(job)} --replica {task}"
    for cut in words.parts(status, "cuts"):
        yield "Cut", _cut(cut)
    yield "User", str(status.get("submitter") or "")
    yield from _moments(words.part(status, "times"))
    yield "Cost", cost
    labels = words.part(job, "labels")
    yield "Labels", ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    yield "Output", results
    scheduling = words.part(spec, "scheduling")
    yield "Rules", ", ".join(f"{key} {json.dumps(value).strip(chr(34))}" for key, value in scheduling.items())
    yield "Resource", str(job.get("name", ""))
    yield "Pipeline", str(status.get("pipeline") or "")
    owner, _, study = str(status.get("owner") or "").partition("/")
    yield "Study", f"{study}; its trials: trainshed study show {study}" if owner == "study" else ""
    yield "Model", str(status.get("model") or "")


def _verdict(verdict: Json, paint: Paint) -> Iterator[tuple[str, str]]:
    """Why, what helps, and the lines that show it."""
    if not verdict:
        return
    yield "Cause", f"{paint(str(verdict.get('cause', '')), 'bold')}: {verdict.get('summary', '')}"
    if verdict.get("task"):
        yield "First", f"{verdict['task']} {verdict.get('ending', '')}"
    yield "Advice", str(verdict.get("advice") or "")
    yield "Retry", "may help" if verdict.get("retryMayHelp") else "would most likely fail the same way"
    for line in words.parts(verdict, "lines"):
        yield "", paint(f"| {line}", "dim")


def _cut(cut: object) -> str:
    if isinstance(cut, dict):
        fields = cast(Json, cut)
        return str(fields.get("message") or ", ".join(f"{key} {value}" for key, value in fields.items()))
    return str(cut)


def _moments(times: Json) -> Iterator[tuple[str, str]]:
    """When each step was, and how long the one before it took."""
    now = datetime.now(UTC)
    steps = (
        ("created", ""),
        ("preparing", "queued"),
        ("prepared", "prepared in"),
        ("admitted", "queued"),
        ("started", "started in"),
        ("ended", "ran"),
    )
    before: datetime | None = None
    for step, took in steps:
        at = words.moment(times.get(step))
        if at is None:
            continue
        passed = "after" if step == "ended" and "started" not in times else took
        length = f"{passed} {words.span(at - before)}" if before and took else f"{words.span(now - at)} ago"
        yield step.capitalize(), f"{words.clock(times[step])} ({length})"
        before = at


def _parts(job: Json, status: Json, events: list[Json], runs: list[Json]) -> Iterator[str]:
    from trainshed.cli.earlier_runs import drawn as drawn_runs
    from trainshed.cli.events import drawn
    from trainshed.cli.table import table

    rows = [_pool(at, pool) for at, pool in enumerate(words.pools(job)) if words.pool_count(pool)]
    if rows:
        headers = ["POOL", "ROLE", "REPLICAS", "MACHINE", "ACCELERATORS", "IMAGE", "RUNS"]
        yield "Pools\n" + table(headers, rows, indent="  ")
    replicas: list[Json] = words.parts(status, "replicas")
    if replicas:
        headers = ["REPLICA", "PHASE", "RESTARTS", "RAN", "NODE", "CPUS", "MEMORY", "GPUS", "PORT", "EXIT"]
        yield "Replicas\n" + table(headers, [_replica(replica) for replica in replicas], indent="  ")
    if runs:
        yield "Earlier runs\n" + drawn_runs(runs)
    if events:
        title = (
            "Events" if len(events) <= LAST_EVENTS else f"Events (the last {LAST_EVENTS} of {len(events)})"
        )
        yield f"{title}\n{drawn(events[-LAST_EVENTS:], indent='  ', brief=True)}"


def _pool(at: int, pool: Json) -> list[str]:
    machine = words.part(pool, "machineSpec")
    container = words.part(pool, "containerSpec")
    package = words.part(pool, "pythonPackageSpec")
    kind = machine.get("acceleratorType")
    module = ["python", "-m", str(package["pythonModule"])] if package.get("pythonModule") else []
    args = words.parts(container, "args") or words.parts(package, "args")
    runs = [*module, *map(str, words.parts(container, "command")), *map(str, args)]
    return [
        str(at),
        ROLES[at] if at < len(ROLES) else "",
        str(words.pool_count(pool)),
        str(machine.get("machineType") or ""),
        f"{machine.get('acceleratorCount') or 1} {kind}" if kind else "",
        str(container.get("imageUri") or package.get("executorImageUri") or ""),
        " ".join(map(_argument, runs)),
    ]


def _argument(text: str) -> str:
    """One argument on one line, quoted where it would read as several. For eyes, not for a shell."""
    plain = " ".join(text.split())
    return plain if text and plain == text and " " not in plain else repr(plain)


def _replica(replica: Json) -> list[str]:
    started = words.moment(replica.get("startTime"))
    ended = words.moment(replica.get("endTime")) or datetime.now(UTC)
    return [
        str(replica.get("task", "")),
        str(replica.get("phase", "")),
        str(replica.get("restarts") or ""),
        words.span(ended - started) if started else "",
        str(replica.get("node") or ""),
        f"{float(str(replica['cpus'])):.2f}".rstrip("0").rstrip(".") if replica.get("cpus") else "",
        words.size(replica["memoryBytes"]) if replica.get("memoryBytes") else "",
        _gpus(replica.get("gpus")),
        str(replica.get("port") or ""),
        words.exit_of(replica),
    ]


def _gpus(value: object) -> str:
    """Which ones, where they are named; else how many."""
    if isinstance(value, list):
        return ",".join(map(str, cast(list[object], value)))
    return words.number(value or None)
