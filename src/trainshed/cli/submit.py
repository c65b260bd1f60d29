"""`trainshed submit`, as click knows it: a program with its folder, or a YAML file, becomes a job."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainshed.cli import submit_options, words
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.follow import finish
from trainshed.cli.job_file import JobFile, read
from trainshed.cli.submit_options import SubmitWords
from trainshed.cli.trouble import EarlyError
from trainshed.client import ApiError, Client, Json

BEHIND = "What is the program's own goes behind --, as in: trainshed submit train.py -- --epochs 5"


class Submit(click.Command):
    """What is behind `--` is the program's, and no business of click's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours, ctx.meta["arguments"] = submit_options.split(args)
        try:
            return super().parse_args(ctx, ours)
        except click.NoSuchOption as error:
            raise click.UsageError(f"{error.format_message()} {BEHIND}", ctx) from error
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message:
                raise
            raise click.UsageError(f"{error.format_message()}. {BEHIND}", ctx) from error


class OptionType(click.ParamType[Any]):
    """A value by the table's own rules, so that click refuses what the quick reader does not take."""

    def __init__(self, kind: str) -> None:
        self.name = self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return submit_options.parsed(self._kind, str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def options(function: Callable[..., int]) -> Callable[..., int]:
    """The table's options, in its order."""
    for field, names, kind, metavar, help in reversed(submit_options.OPTIONS):
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
@options
@click.pass_context
def command(ctx: click.Context, **said: Any) -> int:
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
    wish = SubmitWords({**said, "arguments": ctx.meta["arguments"]})
    if wish.follow and wish.detach:
        raise click.UsageError("--follow and --detach exclude each other.", ctx)
    if wish.is_file:
        return _submit_file(wish)
    from trainshed.cli.submission import submit

    return submit(wish)


def _submit_file(wish: SubmitWords) -> int:
    others = sorted(set(wish.said) - {"target", *submit_options.FOR_FILES})
    if others:
        names = {field: names[-1] for field, names, *_ in submit_options.OPTIONS}
        told = ", ".join(names.get(field, "-- ARGUMENTS") for field in others)
        raise Misuse(f"{told}: only for a program; with a job file, say it in {wish.target}")
    from trainshed.cli.options import connect

    with connect(wish.url, wish.project, wish.location) as client:
        return _send_file(client, wish)


def _send_file(client: Client, wish: SubmitWords) -> int:
    source = "stdin" if wish.target == "-" else wish.target
    found = read(source, _text(wish.target))
    body = _body(found.body, wish)
    if wish.has_places:
        body = _placed(client, body, wish)
    if wish.dry_run:
        return explained(_send(client.explain, found, body), as_json=wish.as_json)
    job = _send(client.create, found, body)
    return finish(client, job, follow=wish.follow, as_json=wish.as_json)


def explained(told: Json, *, as_json: bool) -> int:
    from trainshed.cli.why import drawn

    click.echo(json.dumps(told, indent=2) if as_json else drawn(told))
    return 0


def _text(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandFailed(f"cannot read {file}: {error.strerror}") from error


def _body(body: Json, wish: SubmitWords) -> Json:
    """What the command line says wins over the file."""
    given: dict[str, str] = {}
    for label in wish.labels:
        key, equals, value = label.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{label!r} is not KEY=VALUE", param_hint="--label")
        given[key] = value
    body = dict(body)
    if wish.name or not body.get("displayName"):
        body["displayName"] = wish.name or ("job" if wish.target == "-" else Path(wish.target).stem)
    if given:
        kept = body.get("labels")
        body["labels"] = {**(kept if isinstance(kept, dict) else {}), **given}
    if wish.hold:
        _hold(body, wish.hold)
    return body


def _hold(body: Json, length: str) -> None:
    outer = words.key_of(body, "jobSpec")
    spec = dict(words.part(body, outer))
    inner = words.key_of(spec, "scheduling")
    limits = dict(words.part(spec, inner))
    limits[words.key_of(limits, "holdOnFailure")] = length
    body[outer] = {**spec, inner: limits}


def _placed(client: Client, body: Json, wish: SubmitWords) -> Json:
    from trainshed.cli import places
    from trainshed.cli.seek import seek

    try:
        for check, text in places.checks(wish):
            check(text)
        seek(client, wish)
    except EarlyError as error:
        raise (Misuse if error.code == 2 else CommandFailed)(error.message, error.details) from error
    return places.placed(body, wish)


def _send(ask: Callable[[Json], Json], found: JobFile, body: Json) -> Json:
    try:
        return ask(body)
    except ApiError as error:
        if not error.violations:
            raise
        details = [found.located(violation) for violation in error.violations]
        raise CommandFailed("the server does not accept this job", details) from error
