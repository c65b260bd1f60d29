"""`trainshed get`: what was applied, in tables as kubectl draws them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.manifest_kinds import KINDS, kind_called
from trainshed.cli.options import as_json, connected
from trainshed.client import ApiError, Client, Json
from trainshed.dialects.kubernetes.client import ManifestsClient

FORMS = ("wide", "json", "yaml", "name")
_PHASES = {
    "QUEUED": "Pending",
    "PENDING": "Pending",
    "RUNNING": "Running",
    "CANCELLING": "Terminating",
    "SUCCEEDED": "Succeeded",
    "FAILED": "Failed",
    "CANCELLED": "Cancelled",
}


@click.command("get", short_help="List what was applied: pods, jobs, pytorchjobs and more.")
@click.argument("kind", metavar="KIND|JOB")
@click.argument("name", required=False, default="")
@click.option(
    "-o", "--output", "form", type=click.Choice(FORMS), default="wide", help="[default: wide, a table]"
)
@as_json
@connected
def command(client: Client, kind: str, name: str, form: str, as_json: bool) -> None:
    """List what was applied: pods, jobs, pytorchjobs and more.

    KIND is one of pods, jobs, jobsets, pytorchjobs, tfjobs, mpijobs, trainjobs, imagecaches, experiments. Of
    each name the latest is shown. `trainshed show`, `logs` and `events` take the same names, alone or as
    KIND/NAME. Any other JOB is shown alone, by its id or name.

    \b
    Example:
      trainshed get pods
      trainshed get imagecache tensorflow
      trainshed get job digits -o yaml
    """
    word, _, after = kind.partition("/") if not kind.startswith("projects/") else (kind, "", "")
    form = "json" if as_json else form
    kind = kind_called(word)
    name = name or after
    if not kind:
        _print([_any_job(client, word)], form, ls_drawn, alone=True)
        return
    rows = _caches(client, name) if kind == "ImageCache" else _latest(client, kind, name)
    if name and not rows:
        if kind == "Job":
            from trainshed.cli.find import find

            _print([find(client, name)], form, ls_drawn, alone=True)
            return
        many = KINDS[kind][0]
        raise CommandFailed(
            f"there is no {kind} {name!r}",
            [f"trainshed get {many} lists them", "trainshed ls lists all jobs"],
        )
    if not rows and form == "wide":
        hint = "see: trainshed apply --help; trainshed ls lists all jobs"
        click.echo(f"no {KINDS[kind][0]} were applied; {hint}", err=True)
        return
    draw = {"ImageCache": _drawn_caches, "Experiment": _drawn_experiments}.get(kind, _drawn)
    _print(rows, form, draw, alone=bool(name))


def applied(client: Client, kind: str, name: str) -> str:
    """For `find`: the full name of the latest job of that kind and name; "" where there is none."""
    row: Json | None = next(ManifestsClient(client).all(kind, name), None)
    return "" if row is None else str(words.part(row, "job")["name"])


def _any_job(client: Client, called: str) -> Json:
    from trainshed.cli.find import find

    try:
        return find(client, called)
    except CommandFailed as failure:
        if not failure.message.startswith("there is no job"):
            raise
        kinds = ", ".join(names[0] for names in KINDS.values())
        raise Misuse(f"{called!r} is none of {kinds}, and no job", failure.details) from failure


def _print(rows: list[Json], form: str, draw: Callable[[list[Json]], str], *, alone: bool) -> None:
    """In the form asked for: as a table, as data (one object where it is `alone`), or as names."""
    match form:
        case "json":
            click.echo(json.dumps(rows[0] if alone else rows, indent=2))
        case "yaml":
            from trainshed.cli.ai.output import yaml_text

            click.echo(yaml_text(rows[0] if alone else rows).rstrip("\n"))
        case "name":
            for row in rows:
                kind = row.get("kind")
                click.echo(f"{str(kind).lower()}/{row['name']}" if kind else str(row["name"]))
        case _:
            click.echo(draw(rows))


def ls_drawn(jobs: list[Json]) -> str:
    from trainshed.cli.ls import drawn

    return drawn(jobs, all_locations=True)


def _drawn_caches(caches: list[Json]) -> str:
    from trainshed.cli.image_cache import drawn

    return drawn(caches)


def _drawn_experiments(experiments: list[Json]) -> str:
    from trainshed.cli.table import table

    now = datetime.now(UTC)
    rows: list[list[str]] = []
    for row in experiments:
        study = words.part(row, "study")
        trials, best = words.part(study, "trials"), words.part(study, "best")
        state = words.state(study.get("state"))
        rows.append(
            [
                str(row["name"]),
                _PHASES.get(state, state),
                f"{trials.get('total', 0)}/{trials.get('max', '')}",
                f"{best['metric']}={best['value']:.6g}" if best else "",
                words.age(study.get("createTime"), now),
                words.identity(study),
                str(study.get("message") or ""),
            ]
        )
    return table(["NAME", "STATUS", "TRIALS", "BEST", "AGE", "STUDY", "WHY"], rows)


def _latest(client: Client, kind: str, name: str) -> list[Json]:
    """The newest of each name."""
    latest: dict[str, Json] = {}
    for row in ManifestsClient(client).all(kind, name):
        latest.setdefault(str(row["name"]), row)
    return list(latest.values())


def _caches(client: Client, name: str) -> list[Json]:
    if not name:
        return client.image_caches().all()
    try:
        return [client.image_caches().get(name)]
    except ApiError as error:
        if error.code == 404:
            return []
        raise


def _drawn(manifests: list[Json]) -> str:
    from trainshed.cli.table import table

    now = datetime.now(UTC)
    rows: list[list[str]] = []
    for row in manifests:
        job = words.part(row, "job")
        replicas: list[Json] = words.parts(job, "replicas")
        ready = sum(1 for replica in replicas if replica.get("phase") == "RUNNING")
        restarts = sum(int(replica.get("restarts") or 0) for replica in replicas)
        state = words.state(job.get("state"))
        rows.append(
            [
                str(row["name"]),
                f"{ready}/{len(replicas)}" if replicas else "",
                "Restarting" if state == "RUNNING" and restarts and not ready else _PHASES.get(state, state),
                str(restarts),
                words.age(words.part(job, "times").get("created"), now),
                words.identity(job),
                _why(job),
            ]
        )
    return table(["NAME", "READY", "STATUS", "RESTARTS", "AGE", "JOB", "WHY"], rows)


def _why(job: Json) -> str:
    if words.state(job.get("state")) in ("QUEUED", "PENDING"):
        return str(words.part(job, "waiting").get("message") or "")
    return str(words.part(job, "failure").get("message") or "").partition("\n")[0]
