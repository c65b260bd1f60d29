"""`trainshed get`: what was applied, in tables as kubectl draws them."""

import json
from datetime import UTC, datetime

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import as_json, connected
from trainshed.client import ApiError, Client, Json

KINDS = {
    "Pod": ("pods", "pod", "po"),
    "Job": ("jobs", "job"),
    "ImageCache": ("imagecaches", "imagecache", "ic"),
}
_PHASES = {
    "QUEUED": "Pending",
    "PENDING": "Pending",
    "RUNNING": "Running",
    "CANCELLING": "Terminating",
    "SUCCEEDED": "Succeeded",
    "FAILED": "Failed",
    "CANCELLED": "Cancelled",
}


@click.command("get", short_help="List what was applied: pods, jobs, imagecaches.")
@click.argument("kind", metavar="pods|jobs|imagecaches")
@click.argument("name", required=False, default="")
@as_json
@connected
def command(client: Client, kind: str, name: str, as_json: bool) -> None:
    """List what was applied: pods, jobs, imagecaches.

    Of each name the latest is shown. `trainshed show`, `logs` and `events` take the same names.

    \b
    Example:
      trainshed get pods
      trainshed get imagecache tensorflow
    """
    word, _, after = kind.partition("/")
    kind = next((known for known, names in KINDS.items() if word.lower() in names), "")
    name = name or after
    if not kind:
        raise Misuse(f"{word!r} is none of {', '.join(names[0] for names in KINDS.values())}")
    found = _caches(client, name) if kind == "ImageCache" else _latest(client, kind, name)
    if name and not found:
        many = KINDS[kind][0]
        raise CommandFailed(
            f"there is no {kind} {name!r}",
            [f"trainshed get {many} lists them", "trainshed ls lists all jobs"],
        )
    if as_json:
        click.echo(json.dumps(found[0] if name else found, indent=2))
    elif not found:
        click.echo(f"no {KINDS[kind][0]} were applied; see: trainshed apply --help", err=True)
    else:
        click.echo(drawn_caches(found) if kind == "ImageCache" else _drawn(found))


def _latest(client: Client, kind: str, name: str) -> list[Json]:
    """The newest of each name."""
    found: dict[str, Json] = {}
    for row in client.manifests().all(kind, name):
        found.setdefault(str(row["name"]), row)
    return list(found.values())


def _caches(client: Client, name: str) -> list[Json]:
    if not name:
        return client.image_caches().all()
    try:
        return [client.image_caches().get(name)]
    except ApiError as error:
        if error.code == 404:
            return []
        raise


def _drawn(found: list[Json]) -> str:
    from trainshed.cli.table import table

    now = datetime.now(UTC)
    rows: list[list[str]] = []
    for row in found:
        job = words.part(row, "job")
        replicas: list[Json] = words.parts(job, "replicas")
        ready = sum(1 for one in replicas if one.get("phase") == "RUNNING")
        restarts = sum(int(one.get("restarts") or 0) for one in replicas)
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


def drawn_caches(found: list[Json]) -> str:
    from trainshed.cli.paint import Paint
    from trainshed.cli.table import table

    paint, now = Paint.for_stdout(), datetime.now(UTC)
    colours = {"READY": "green", "CREATING": "yellow", "FAILED": "red"}
    rows = [
        [
            words.identity(one),
            paint(str(one.get("state")), colours.get(str(one.get("state")))),
            f"{one.get('progress', 0)}%",
            words.size(one["sizeBytes"]) if one.get("sizeBytes") else "",
            words.age(one.get("createTime"), now),
            f"{one['retentionDays']}d" if one.get("retentionDays") else "",
            ", ".join(map(str, words.parts(one, "images"))),
            str(one.get("reason") or ""),
        ]
        for one in found
    ]
    return table(["NAME", "STATE", "PROGRESS", "SIZE", "AGE", "RETENTION", "IMAGES", "WHY"], rows)
