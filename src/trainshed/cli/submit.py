"""`trainshed submit`, as click knows it: a program with its folder, or a YAML file, becomes a job."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainshed.cli import submit_options, words
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.follow import finish
from trainshed.cli.job_file import JobFile, read, read_bytes
from trainshed.cli.submit_options import SubmitWords
from trainshed.cli.trouble import EarlyError
from trainshed.client import ApiError, Client, Json

BEHIND = "What is the program's own goes behind --, as in: trainshed {} train.py -- --epochs 5"


class Submit(click.Command):
    """What is behind `--` is the program's, and no business of click's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours, ctx.meta["arguments"] = submit_options.split(args)
        try:
            return super().parse_args(ctx, ours)
        except click.NoSuchOption as error:
            behind = BEHIND.format(ctx.info_name)
            raise click.UsageError(f"{error.format_message()} {behind}", ctx) from error
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message:
                raise
            behind = BEHIND.format(ctx.info_name)
            raise click.UsageError(f"{error.format_message()}. {behind}", ctx) from error


class OptionType(click.ParamType[Any]):
    """A value by the table's own rules, so that click refuses what the quick reader does not take."""

    def __init__(self, kind: str) -> None:
        self.name = self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return submit_options.parsed(self._kind, str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def submit_flags(function: Callable[..., int]) -> Callable[..., int]:
    return flags_of(submit_options.OPTIONS, function)


def flags_of(rows: tuple[submit_options.Row, ...], function: Callable[..., int]) -> Callable[..., int]:
    """The table's options, in its order."""
    for field, names, kind, metavar, help in reversed(rows):
        if kind == submit_options.FLAG:
            function = click.option(*names, field, is_flag=True, help=help)(function)
        else:
            many = kind == submit_options.MANY
            option = click.option(
                *names, field, metavar=metavar, multiple=many, type=OptionType(kind), help=help
            )
            function = option(function)
    return function


@click.command("submit", cls=Submit, short_help="Submit a program with its folder, or a job in a YAML file.")
@click.argument(
    "target", metavar="SCRIPT|FOLDER|FILE.yaml", required=False, type=click.Path(), shell_complete=None
)
@submit_flags
@click.pass_context
def command(ctx: click.Context, **given: Any) -> int:
    """Submit a program with its folder, or a job in a YAML file.

    The folder is packed and sent, what the server has already is not sent again, and the logs are followed:
    Ctrl-C leaves the job running. Packed is the git work tree the script is in (tracked, modified and new
    files, not ignored ones), or outside of git the current folder; never .git and virtual environments. The
    job runs in a copy of it and starts where you stand: what `python train.py` finds here, it finds there.

    SCRIPT is a Python script, a shell script or any program; FOLDER one with a __main__.py. What is behind
    -- goes to the program. A FILE.yaml is a CustomJob, or a CustomJobSpec as `gcloud ai custom-jobs create
    --config` takes it (`-` reads it from stdin); nothing is packed for it, and it is not followed unless -f
    says so.

    Exit code: the job's own when it is followed (128 + the signal if killed), 130 after Ctrl-C, 1 for an
    error, 2 for a wrong command line. Without following, the new job's id is printed on stdout.

    \b
    Example:
      trainshed submit train.py --replicas 3 --machine n1-standard-4 -- --epochs 5
      trainshed submit -m trainer.task --gpu NVIDIA_TESLA_T4 --detach
      trainshed submit digits.yaml --label team=vision --follow
    """
    options = SubmitWords({**given, "arguments": ctx.meta["arguments"]})
    if options.follow and options.detach:
        raise click.UsageError("--follow and --detach exclude each other.", ctx)
    if options.is_file:
        return _submit_file(options)
    from trainshed.cli.submission import submit

    return submit(options)


def _submit_file(options: SubmitWords) -> int:
    others = sorted(set(options.given) - {"target", *submit_options.FOR_FILES})
    if others:
        names = {field: names[-1] for field, names, *_ in submit_options.OPTIONS}
        flags = ", ".join(names.get(field, "-- ARGUMENTS") for field in others)
        raise Misuse(f"{flags}: only for a program; with a job file, say it in {options.target}")
    from trainshed.cli.options import connect

    with connect(options.url, options.project, options.location) as client:
        return _send_file(client, options)


def _send_file(client: Client, options: SubmitWords) -> int:
    try:
        file = read(*read_bytes(options.target))
    except OSError as error:
        raise CommandFailed(f"cannot read {options.target}: {error.strerror}") from error
    body = _body(file.body, options)
    if options.has_places:
        body = _placed(client, body, options)
    if options.dry_run:
        return explained(_send(client.explain, file, body), as_json=options.as_json)
    job = _send(client.create, file, body)
    return finish(client, job, follow=options.follow, as_json=options.as_json)


def explained(answer: Json, *, as_json: bool) -> int:
    from trainshed.cli.why import drawn

    click.echo(json.dumps(answer, indent=2) if as_json else drawn(answer))
    return 0


def _body(body: Json, options: SubmitWords) -> Json:
    """What the command line says wins over the file."""
    given: dict[str, str] = {}
    for label in options.labels:
        key, equals, value = label.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{label!r} is not KEY=VALUE", param_hint="--label")
        given[key] = value
    body = dict(body)
    if options.name or not body.get("displayName"):
        body["displayName"] = options.name or ("job" if options.target == "-" else Path(options.target).stem)
    if given:
        kept = body.get("labels")
        body["labels"] = {**(kept if isinstance(kept, dict) else {}), **given}
    if options.hold:
        _hold(body, options.hold)
    return body


def _hold(body: Json, length: str) -> None:
    outer = words.key_of(body, "jobSpec")
    spec = dict(words.part(body, outer))
    inner = words.key_of(spec, "scheduling")
    limits = dict(words.part(spec, inner))
    limits[words.key_of(limits, "holdOnFailure")] = length
    body[outer] = {**spec, inner: limits}


def _placed(client: Client, body: Json, options: SubmitWords) -> Json:
    from trainshed.cli import places
    from trainshed.cli.seek import seek

    try:
        for check, text in places.checks(options):
            check(text)
        seek(client, options)
    except EarlyError as error:
        raise (Misuse if error.code == 2 else CommandFailed)(error.message, error.details) from error
    return places.placed(body, options)


def _send(ask: Callable[[Json], Json], file: JobFile, body: Json) -> Json:
    try:
        return ask(body)
    except ApiError as error:
        if not error.violations:
            raise
        details = [file.located(violation) for violation in error.violations]
        raise CommandFailed("the server does not accept this job", details) from error
