"""What the shell offers behind a command when Tab is pressed: jobs or studies, by id and by name.

Nothing may be printed and nothing may fail here: a shell in the middle of a line has no place for either.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trainshed.client import Client, Json

OFFERED = 100  # the latest


def jobs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    rows = asked(ctx, lambda client: client.jobs(limit=OFFERED, location="-"))
    return _offered(rows, ctx, param, incomplete)


def studies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    rows = asked(ctx, lambda client: client.studies().rows(limit=OFFERED, location="-"))
    return _offered(rows, ctx, param, incomplete)


def _offered(rows: "list[Json]", ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from trainshed.cli import words

    taken = set(ctx.params.get(param.name or "") or ()) if param.nargs != 1 else set[str]()
    items: dict[str, Any] = {}
    for row in rows:
        identity, name, state = (
            words.identity(row),
            str(row.get("displayName", "")),
            words.state(row.get("state")),
        )
        if identity.startswith(incomplete):
            items.setdefault(identity, CompletionItem(identity, help=f"{name} {state}"))
        elif incomplete and name.startswith(incomplete):
            items.setdefault(name, CompletionItem(name, help=f"{identity} {state}"))
    return [item for value, item in items.items() if value not in taken]


def asked(ctx: click.Context, ask: "Callable[[Client], Iterable[Json]]") -> "list[Json]":
    """What the server tells; nothing where it cannot be asked."""
    from trainshed.client import Client, ClientError, discover

    given = ctx.params
    try:
        place = given.get("location") or given.get("region")
        target = discover(url=given.get("url"), project=given.get("project"), location=place)
        with Client.of(target, pauses=()) as client:
            return list(ask(client))
    except ClientError:
        return []
