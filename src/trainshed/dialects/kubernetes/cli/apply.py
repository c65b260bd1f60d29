"""`trainshed apply`: Kubernetes' manifests as they are become jobs, studies and image caches."""

import json
from collections.abc import Iterator

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.job_file import read_text
from trainshed.cli.options import as_json, connected
from trainshed.client import ApiError, Client, Json
from trainshed.dialects.kubernetes.cli.file import Document, documents
from trainshed.dialects.kubernetes.client import ManifestsClient


@click.command("apply", short_help="Run Kubernetes' manifests: Pod, Job, JobSet, PyTorchJob and more.")
@click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    required=True,
    help="Or - for stdin. Repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would become of it.")
@click.option("--again", is_flag=True, help="Run a job that is over once more, though nothing has changed.")
@as_json
@connected
def command(client: Client, files: tuple[str, ...], dry_run: bool, again: bool, as_json: bool) -> int:
    """Run Kubernetes' manifests: Pod, Job, JobSet, PyTorchJob and more.

    A Pod, Job, JobSet, PyTorchJob, TFJob, MPIJob or TrainJob becomes a job of its name: containers are
    pools. An ImageCache brings images, an Experiment of Katib becomes a study. What cannot be had is refused
    with its line, what is ignored is said. Indentation that got lost, as on web pages, is repaired. The same
    manifest again is the same job; what has changed is applied once the job of that name is over. Several
    documents in a file are checked before the first is applied.

    \b
    Example:
      trainshed apply -f gpu_pod.yaml
      trainshed apply -f job.yaml --dry-run --json
      trainshed get pods
    """
    manifests = [document for file in files for document in documents(*read_text(file))]
    for document in manifests:
        if document.warning:
            _warn(document.warning)
            if dry_run and not as_json:
                click.echo(document.text, err=True)
    if len(manifests) > 1 and not dry_run:
        for document in manifests:
            _sent(client, document, dry_run=True, again=again)
    answers: list[Json] = []
    for document in manifests:
        answer = _sent(client, document, dry_run=dry_run, again=again)
        for note in words.parts(answer, "notes"):
            _warn(str(note))
        answers.append(answer)
        if not as_json:
            click.echo(outcome_line(answer))
    if as_json:
        click.echo(json.dumps(answers, indent=2))
    elif dry_run:
        for answer in answers:
            made_of = ("customJob", "hyperparameterTuningJob", "imageCache")
            click.echo(json.dumps(next(answer[name] for name in made_of if name in answer), indent=2))
    return 0


def _sent(client: Client, document: Document, *, dry_run: bool, again: bool) -> Json:
    try:
        return ManifestsClient(client).apply(document.fields, dry_run=dry_run, again=again)
    except ApiError as error:
        if not error.violations:
            raise CommandFailed(f"{document.file}: {error.message}") from error
        raise CommandFailed(
            f"the server does not accept {document.file}", document.located(error.violations)
        ) from error


def made(client: Client, file: str, text: str) -> Iterator[str]:
    """For `delete -f`: the full names of the jobs a file became. Its image caches are deleted at once."""
    for document in documents(file, text):
        kind = str(document.fields.get("kind"))
        called = str(words.part(document.fields, "metadata").get("name"))
        if kind == "ImageCache":
            client.image_caches().delete(called)
            click.echo(f"deleted imagecache/{called}", err=True)
            continue
        row: Json | None = next(ManifestsClient(client).all(kind, called), None)
        if row is not None and kind == "Experiment":
            _delete_study(client, str(words.part(row, "study")["name"]))
            click.echo(f"deleted experiment/{called}", err=True)
            continue
        if row is None:
            raise CommandFailed(
                f"there is no {kind} {called!r}", [f"{file} was not applied, or is deleted already"]
            )
        yield str(words.part(row, "job")["name"])


def _delete_study(client: Client, name: str) -> None:
    """Whether it runs or not."""
    import time

    from trainshed.client.api import is_final
    from trainshed.client.studies import StudiesClient

    studies = StudiesClient(client)
    if not is_final(studies.view(name)):
        studies.cancel(name)
    while not is_final(studies.view(name)):
        time.sleep(0.2)
    studies.delete(name)


def _warn(text: str) -> None:
    from trainshed.cli.paint import Paint

    click.echo(f"{Paint.for_stderr()('warning:', 'yellow')} {text}", err=True)


def outcome_line(answer: Json) -> str:
    """One line, as kubectl has it, and where to look next."""
    name = f"{str(answer.get('kind')).lower()}/{answer.get('name')}"
    is_study = "hyperparameterTuningJob" in answer
    job = words.part(answer, "hyperparameterTuningJob" if is_study else "customJob")
    outcome, called = str(answer.get("outcome")), "study" if is_study else "job"
    state = words.state(job.get("state") or words.part(answer, "imageCache").get("state"))
    match outcome:
        case "DRY_RUN":
            return f"{name} would be created"
        case "UNCHANGED" if not job.get("name"):
            return f"{name} unchanged" + (f": it is {state}" if not job else "")
        case "UNCHANGED":
            over = state in ("SUCCEEDED", "FAILED", "CANCELLED")
            more = "; run it once more with: trainshed apply --again" if over else ""
            return f"{name} unchanged: it is {state} ({called} {words.identity(job)}){more}"
        case _:
            more = f" ({called} {words.identity(job)})" if job else ""
            return f"{name} {outcome.lower()}{more}"
