"""What several commands take: which server, which project; and how a server's refusal reads."""

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from trainshed.cli.complete import jobs
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.trouble import EarlyError
from trainshed.client import ApiError, ApiViolation, Client, ClientError, Target, Unreachable, discover

_OWN_TOKEN = "the server keeps its token in the file `token` in its home"
P = ParamSpec("P")
R = TypeVar("R")


def targeted(function: Callable[Concatenate[Target, P], R]) -> Callable[..., R]:
    """Gives a command --url, --project and --location, and the Target they make as its first argument."""

    @click.option("--url", metavar="URL", help="The server's address. [default: the one running here]")
    @click.option("--project", metavar="NAME", help="The project. [default: TRAINSHED_PROJECT or gcloud's]")
    @click.option(
        "--location",
        "--region",
        "location",
        metavar="NAME",
        help="The location; - for all. [default: TRAINSHED_LOCATION or gcloud's]",
    )
    @functools.wraps(function)
    def wrapped(url: str | None, project: str | None, location: str | None, *args: Any, **kwargs: Any) -> R:
        try:
            target = discover(url=url, project=project, location=location)
        except ClientError as error:
            raise CommandFailed(str(error)) from error
        try:
            return function(target, *args, **kwargs)
        except ClientError as error:
            raise explain(error, target) from error

    return wrapped


def connected(function: Callable[Concatenate[Client, P], R]) -> Callable[..., R]:
    """As `targeted`, with a Client as the first argument."""

    @functools.wraps(function)
    def wrapped(target: Target, *args: Any, **kwargs: Any) -> R:
        with Client.of(target) as client:
            return function(client, *args, **kwargs)

    return targeted(wrapped)


job_argument = click.argument("job", shell_complete=jobs)
jobs_argument = click.argument("jobs", metavar="JOB...", nargs=-1, required=True, shell_complete=jobs)


def at_most(help: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Gives a command --limit, for lists that the server has in pages."""
    return click.option(
        "--limit", metavar="N", type=click.IntRange(1, 1000), default=50, show_default=True, help=help
    )


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@contextmanager
def connect(url: str, project: str, location: str) -> Generator[Client]:
    """A client, and its errors told, for a command that reads its own options."""
    target: Target | None = None
    try:
        target = discover(url=url or None, project=project or None, location=location or None)
        with Client.of(target) as client:
            yield client
    except (ClientError, EarlyError) as error:
        raise failed(error, target) from error


def failed(error: ClientError | EarlyError, target: Target | None) -> CommandFailed:
    if isinstance(error, EarlyError):
        return (Misuse if error.code == Misuse.exit_code else CommandFailed)(error.message, error.details)
    return explain(error, target) if target else CommandFailed(str(error))


def explain(error: ClientError, target: Target) -> CommandFailed:
    if isinstance(error, Unreachable):
        return CommandFailed(
            f"no server answers at {error.url} ({error.cause})",
            [
                f"the address comes from {target.url_from}",
                f"start a server with: trainshed up{_at_home(target)}",
                "or name another with --url or TRAINSHED_URL",
            ],
        )
    if not isinstance(error, ApiError):
        return CommandFailed(str(error))
    if error.code in (401, 403):
        origin = f"the token comes from {target.token_from}"
        if target.token is None:
            origin = f"no token was found: there is no {target.token_from}, and TRAINSHED_TOKEN is not set"
        is_account = (target.token or "").startswith("ts.")
        further = "see who you are with: trainshed whoami" if is_account else _OWN_TOKEN
        return CommandFailed(error.message, [origin, further])
    if len(error.violations) == 1 and error.message.endswith(error.violations[0].description):
        return CommandFailed(violation_text(error.violations[0]))  # the message says the same
    return CommandFailed(error.message, violations(error.violations))


def _at_home(target: Target) -> str:
    import shlex
    from pathlib import Path

    is_default = target.folder == str(Path("~/.trainshed").expanduser())
    return "" if is_default else f" --home {shlex.quote(target.folder)}"


def violations(items: tuple[ApiViolation, ...]) -> list[str]:
    return [violation_text(item) for item in items]


def violation_text(violation: ApiViolation) -> str:
    """The field and what is wrong with it: a sentence of its own, or one that the field begins."""
    sentence = violation.description
    return (
        f"{violation.field}{':' if sentence[:1].isupper() else ''} {sentence}"
        if violation.field
        else sentence
    )
