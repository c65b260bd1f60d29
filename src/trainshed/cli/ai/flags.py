"""The flags every command here takes, and how the server's refusal reads under gcloud's name."""

import functools
import re
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from trainshed.cli.ai.grammar import GcloudRefusal
from trainshed.cli.options import explain
from trainshed.client import ApiError, Client, ClientError, Target, discover

P = ParamSpec("P")
R = TypeVar("R")

PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*")  # names of projects and regions have no capitals
CONFLICT = 409

# gcloud takes these with every command. They steer gcloud itself, so that here there is nothing to do.
_VALUES = ("--account", "--billing-project", "--configuration", "--trace-token", "--verbosity")
_SWITCHES = (
    ("-q", "--quiet"),
    ("--log-http/--no-log-http",),
    ("--user-output-enabled/--no-user-output-enabled",),
)

formatted = click.option(
    "--format",
    "form",
    metavar="FORMAT",
    help="json, yaml, value(KEY,...), csv(KEY,...), table(KEY,...) or none.",
)


def switch(flag: str, text: str) -> Any:
    """A flag with its opposite; None where neither is given."""
    return click.option(f"--{flag}/--no-{flag}", default=None, help=text)


def encrypted(function: Callable[..., R]) -> Callable[..., R]:
    """Gives a command the flags of an encryption key, as kms_key, kms_keyring, kms_location, kms_project."""
    flags = (
        ("key", "KEY", "The key that encrypts the job; a full name, or with:"),
        ("keyring", "NAME", "its ring,"),
        ("location", "NAME", "its location,"),
        ("project", "NAME", "its project."),
    )
    for name, metavar, text in reversed(flags):
        function = click.option(f"--kms-{name}", metavar=metavar, help=text)(function)
    return function


def spoken(function: Callable[Concatenate[Client, P], R]) -> Callable[..., R]:
    """Gives a command gcloud's common flags, and a Client of the project and region they name."""

    @click.option(
        "--project", metavar="PROJECT_ID", help="The project. [default: TRAINSHED_PROJECT or gcloud's]"
    )
    @click.option("--region", metavar="REGION", help="The region. [default: TRAINSHED_LOCATION or gcloud's]")
    @click.option("--url", metavar="URL", help="The server's address. [default: the one running here]")
    @click.pass_context
    @functools.wraps(function)
    def wrapped(
        ctx: click.Context,
        project: str | None,
        region: str | None,
        url: str | None,
        *args: Any,
        **kwargs: Any,
    ) -> R:
        try:
            target = _target(project, region, url)
        except ClientError as error:
            raise GcloudRefusal(ctx.command_path, str(error)) from error
        try:
            with Client.of(target) as client:
                return function(client, *args, **kwargs)
        except ClientError as error:
            raise refusal(ctx.command_path, error, target) from error

    command: Callable[..., R] = wrapped
    for flag in _VALUES:
        command = click.option(flag, hidden=True, expose_value=False)(command)
    for names in _SWITCHES:
        command = click.option(*names, is_flag=True, hidden=True, expose_value=False)(command)
    return command


def _target(project: str | None, region: str | None, url: str | None) -> Target:
    """Printed commands say --project=PROJECT_ID. The real gcloud refuses that; we know what is meant."""
    given = {"project": project, "region": region}
    vague = {name: text for name, text in given.items() if text and PLACEHOLDER.fullmatch(text)}
    plain = {name: None if name in vague else text for name, text in given.items()}
    target = discover(url=url, project=plain["project"], location=plain["region"])
    taken = {"project": target.project, "region": target.location}
    for name, text in vague.items():
        click.echo(f"note: --{name}={text} is a placeholder; the {name} is {taken[name]}.", err=True)
    return target


def refusal(path: str, error: ClientError, target: Target) -> GcloudRefusal:
    """The error as gcloud prints it: the status and message, and below them the violations as YAML."""
    if not isinstance(error, ApiError):
        failure = explain(error, target)
        return GcloudRefusal(path, failure.message, failure.details)
    message = f"{error.status}: {error.message}"
    if error.code == CONFLICT:
        where = f"Resource in projects [{target.project}]"
        return GcloudRefusal(path, f"{where} is the subject of a conflict: {error.message}")
    if error.code in (401, 403):
        return GcloudRefusal(path, message, explain(error, target).details)
    if not error.violations:
        return GcloudRefusal(path, message)
    from trainshed.cli.ai.output import yaml_text

    violations = [
        {"description": violation.description, "field": violation.field} for violation in error.violations
    ]
    return GcloudRefusal(path, message, yaml_text([{"fieldViolations": violations}]).splitlines())
