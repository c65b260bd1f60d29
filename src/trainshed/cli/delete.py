"""`trainshed delete`: removes ended jobs and all that is kept of them; with --force, running ones too."""

import importlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from trainshed.cli.complete import jobs as of_server
from trainshed.cli.failure import Misuse
from trainshed.cli.options import as_json, connected
from trainshed.client import Client


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
    from trainshed.cli.find import find
    from trainshed.cli.job_file import read, read_text
    from trainshed.cli.main import DIALECTS
    from trainshed.cli.synonyms import MANIFEST

    name, text = read_text(file)
    if MANIFEST.search(text):
        yield from importlib.import_module(DIALECTS["apply"]).made(client, name, text)
        return
    display = str(read(name, text.encode()).body.get("displayName") or Path(name).stem)
    yield str(find(client, display, exactly=True)["name"])
