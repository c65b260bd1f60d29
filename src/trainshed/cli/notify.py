"""`trainshed notify`: who is told when jobs end, fail, hang or are interrupted."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, Unpack

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import as_json, connected
from trainshed.cli.paint import Paint
from trainshed.cli.table import table
from trainshed.client import ApiError, Client, Json
from trainshed.client.notices import NoticesClient

KINDS = "failed, ended (failures too), hung, interrupted, budget"


class ChannelChoice(TypedDict):
    """Which channels are meant."""

    all_projects: bool
    mine: bool
    user: str | None


def choosing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which channels are meant."""
    for option in (
        click.option("--user", metavar="NAME", help="A channel for the jobs that NAME submitted."),
        click.option("--mine", is_flag=True, help="A channel of your own, for the jobs that you submitted."),
        click.option("--all-projects", is_flag=True, help="A channel of the whole server."),
    ):
        function = option(function)
    return function


@click.group("notify", short_help="Have people told when jobs end, fail or hang: webhook, Slack, mail.")
def command() -> None:
    """Have people told when jobs end, fail or hang: webhook, Slack, mail.

    \b
    Example:
      trainshed notify add --name team --slack https://hooks.slack.com/services/T0/B0/xyz --on failed,hung
      trainshed notify test team
      trainshed notify ls
    """


@command.command("add", short_help="Add a channel: where notices of the project's jobs go.")
@click.option("--name", required=True, metavar="NAME", help="What the channel is called.")
@click.option("--webhook", metavar="URL", help="Post signed JSON there.")
@click.option("--slack", metavar="URL", help='Post {"text": …} there: Slack, Mattermost, Rocket.Chat.')
@click.option("--mail", metavar="ADDRESS", help="Send mails there.")
@click.option("--on", "kinds", metavar="KIND,...", help=f"Of {KINDS}. [default: all]")
@click.option(
    "--label", "labels", metavar="KEY=VALUE", multiple=True, help="Only of jobs with it. Repeatable."
)
@click.option(
    "--secret-from-file", metavar="FILE", help="What requests are signed with. [default: a new one]"
)
@choosing
@as_json
@connected
def add(client: Client, name: str, as_json: bool, **given: Any) -> None:
    """Add a channel: where notices of the project's jobs go.

    Give one of --webhook, --slack and --mail. The secret of a webhook is shown only now. With --mine whoever
    submits jobs adds mail to their own account; all else is for admins of the server.

    \b
    Example:
      trainshed notify add --name ops --webhook https://ops.example/hooks/trainshed --on failed,hung
      trainshed notify add --name me --mine --mail ada@example.com
    """
    chosen = ChannelChoice(all_projects=given["all_projects"], mine=given["mine"], user=given["user"])
    made = _notices(client, chosen).add(name, request_body(given))
    if as_json:
        click.echo(json.dumps(made, indent=2))
        return
    click.echo(f"added channel {name}; try it with: trainshed notify test {name}{_flags(chosen)}")
    if made.get("secret") and not given.get("secret_from_file"):
        click.echo(f"its requests are signed with this secret, which is not shown again: {made['secret']}")


@command.command("ls", short_help="List channels: when each last took a notice, and what went wrong.")
@choosing
@as_json
@connected
def ls(client: Client, as_json: bool, **chosen: Unpack[ChannelChoice]) -> None:
    """List channels: when each last took a notice, and what went wrong.

    Those of the whole server are listed too. With --all-projects those of all projects are. With --mine only
    your own are.

    \b
    Example:
      trainshed notify ls --json
    """
    channels = _notices(client, chosen).all()
    if as_json:
        click.echo(json.dumps(channels, indent=2))
    elif not channels:
        click.echo("nobody is told of jobs; see: trainshed notify add --help", err=True)
    else:
        click.echo(drawn(channels))


@command.command("rm", short_help="Remove channels, with what waits for them.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@choosing
@as_json
@connected
def rm(client: Client, names: tuple[str, ...], as_json: bool, **chosen: Unpack[ChannelChoice]) -> None:
    """Remove channels, with what waits for them.

    \b
    Example:
      trainshed notify rm team
    """
    for name in names:
        try:
            _notices(client, chosen).delete(name)
        except ApiError as error:
            raise _explained(error, name, chosen) from error
        click.echo(json.dumps({"removed": name}) if as_json else f"removed channel {name}")


@command.command("test", short_help="Send a channel one notice now, and show what it answers.")
@click.argument("name", metavar="NAME")
@choosing
@as_json
@connected
def test(client: Client, name: str, as_json: bool, **chosen: Unpack[ChannelChoice]) -> int:
    """Send a channel one notice now, and show what it answers.

    Exit code 1 if it was not taken. If it was, notices that wait for the channel are sent too.

    \b
    Example:
      trainshed notify test team
    """
    try:
        answer = _notices(client, chosen).test(name)
    except ApiError as error:
        raise _explained(error, name, chosen) from error
    is_taken = bool(answer.get("delivered"))
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    elif is_taken:
        click.echo(f"taken: {answer.get('answer')}")
    else:
        click.echo(f"not taken: {answer.get('answer')}", err=True)
    return 0 if is_taken else 1


def request_body(given: Mapping[str, Any]) -> Json:
    """The request that the options ask for. The server checks what they say."""
    body: Json = {way: given[way] for way in ("webhook", "slack", "mail") if given.get(way)}
    if not body:
        raise Misuse("say where notices go: --webhook URL, --slack URL or --mail ADDRESS")
    if given.get("kinds"):
        body["on"] = [word.strip().lower() for word in given["kinds"].split(",") if word.strip()]
    if labels := [item.partition("=") for item in given.get("labels", ())]:
        if wrong := [key for key, equals, _ in labels if not (key and equals)]:
            raise Misuse(f"--label {wrong[0]}: write KEY=VALUE")
        body["labels"] = {key: value for key, _, value in labels}
    if file := given.get("secret_from_file"):
        try:
            body["secret"] = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandFailed(f"cannot read {file}: {error}") from error
    return body


def drawn(channels: list[Json]) -> str:
    paint, now = Paint.for_stdout(), datetime.now(UTC)
    headers = [
        "NAME",
        "PROJECT",
        "BY",
        "TO",
        "ON",
        "LABELS",
        "JOBS OF",
        "WAITING",
        "GIVEN UP",
        "LAST TAKEN",
        "LAST ERROR",
    ]
    return table(headers, [_row(item, paint, now) for item in channels])


def _row(item: Json, paint: Paint, now: datetime) -> list[str]:
    labels = words.part(item, "labels")
    failure, success = item.get("lastErrorTime"), item.get("lastSuccessTime")
    error = f"{words.age(failure, now)} ago: {item.get('lastError')}" if failure else ""
    is_bad = bool(failure) and str(success or "") < str(failure)
    return [
        words.identity(item),
        "(all)" if item.get("project") == "-" else str(item.get("project")),
        str(item.get("way")),
        str(item.get("address")),
        ",".join(map(str, words.parts(item, "on"))),
        ",".join(f"{key}={value}" for key, value in labels.items()),
        str(item.get("user") or ""),
        str(item.get("waiting") or ""),
        str(item.get("givenUp") or ""),
        f"{words.age(success, now)} ago" if success else "",
        paint(error, "red") if is_bad else error,
    ]


def _notices(client: Client, chosen: ChannelChoice) -> NoticesClient:
    if chosen["mine"] and chosen["user"]:
        raise Misuse("--mine does not go with --user")
    project = "-" if chosen["all_projects"] else ""
    return client.notices(project, is_own=chosen["mine"], user=chosen["user"] or "")


def _flags(chosen: ChannelChoice) -> str:
    flags = [" --all-projects"] if chosen["all_projects"] else []
    flags += [" --mine"] if chosen["mine"] else []
    return "".join([*flags, f" --user {chosen['user']}" if chosen["user"] else ""])


def _explained(error: ApiError, name: str, chosen: ChannelChoice) -> Exception:
    if error.code != 404:
        return error
    where = "of the whole server" if chosen["all_projects"] else "of this project"
    where = f"of your own {where}" if chosen["mine"] else where
    hint = "channels of the whole server need --all-projects, your own --mine; trainshed notify ls lists them"
    return CommandFailed(f"there is no channel {name!r} {where}", [hint])
