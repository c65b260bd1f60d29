"""`trainshed delete`: removes ended jobs and all that is kept of them; with --force, running ones too."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from trainshed.cli import words
from trainshed.cli.complete import jobs as of_server
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json


@click.command("delete", short_help="Delete ended jobs with their logs.")
@click.argument("jobs", metavar="[JOB]...", nargs=-1, shell_complete=of_server)
@click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    help="What a manifest or job file made, whether it runs or not. Repeatable.",
)
@click.option("--force", is_flag=True, help="Cancel jobs that have not ended, wait, then delete them.")
@as_json
@connected
def command(client: Client, jobs: tuple[str, ...], files: tuple[str, ...], force: bool, as_json: bool) -> int:
    """Delete ended jobs with their logs.

    A job that still runs is refused: cancel it first, or delete it with --force. `-f JOB` means --force too.

    \b
    Example:
      trainshed delete digits
      trainshed delete -f gpu_pod.yaml
    """
    from trainshed.cli.each import each

    if not jobs and not files:
        raise Misuse("say what to delete: jobs, or what a file made with -f FILE")
    named = [file for file in files if not _is_file(file)]
    made = [name for file in files if _is_file(file) for name in _made(client, file)]
    if not jobs and not named and not made:
        return 0  # the file had image caches only
    forced = force or bool(files)
    return each(
        client,
        (*jobs, *named, *made),
        partial(_end, client) if forced else client.delete,
        "deleted",
        as_json=as_json,
    )


def _end(client: Client, job: str) -> None:
    from trainshed.client.api import is_final

    if not is_final(client.get(job)):
        client.cancel(job)
        client.wait(job)
    client.delete(job)


def _is_file(text: str) -> bool:
    return text == "-" or text.lower().endswith((".yaml", ".yml", ".json")) or Path(text).is_file()


def _made(client: Client, file: str) -> Iterator[str]:
    """The full names of the jobs that a file became; its image caches are deleted at once."""
    from trainshed.cli.apply import read_text
    from trainshed.cli.find import find
    from trainshed.cli.manifest_file import documents
    from trainshed.cli.synonyms import MANIFEST

    name, text = read_text(file)
    if not MANIFEST.search(text):
        from trainshed.cli.job_file import read

        display = str(read(name, text.encode()).body.get("displayName") or Path(name).stem)
        yield str(find(client, display, exactly=True)["name"])
        return
    for document in documents(name, text):
        kind, called = (
            str(document.fields.get("kind")),
            str(words.part(document.fields, "metadata").get("name")),
        )
        if kind == "ImageCache":
            client.image_caches().delete(called)
            click.echo(f"deleted imagecache/{called}", err=True)
            continue
        row: Json | None = next(client.manifests().all(kind, called), None)
        if row is None:
            raise CommandFailed(
                f"there is no {kind} {called!r}", [f"{name} was not applied, or is deleted already"]
            )
        yield str(words.part(row, "job")["name"])
