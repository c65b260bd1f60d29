"""Doing one thing to several jobs or studies: each refusal is told, the others done, the code remembers."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.find import find
from trainshed.cli.options import violations
from trainshed.client import ApiError, Client, Json


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is acted on, and how it is found by what a person calls it."""

    noun: str
    find: Callable[..., Json]


JOBS = Lookup("job", find)


def each(
    client: Client,
    items: Iterable[str],
    act: Callable[[str], object],
    done: str,
    *,
    alive: bool = False,
    as_json: bool = False,
    lookup: Lookup = JOBS,
) -> int:
    """As JSON: one list, for each item as it was called its name and what was done, or the error.

    With `alive`, a name means the one that has not ended.
    """
    code = 0
    outcomes: list[Json] = []
    for called in items:
        try:
            match = lookup.find(client, called, exactly=True, alive=alive)
            act(match["name"])
        except ApiError as error:
            if error.code in (401, 403):
                raise  # it will be the same for all
            CommandFailed(f"{called}: {error.message}", violations(error.violations)).show()
            outcomes.append({lookup.noun: called, "error": error.message})
            code = 1
        except CommandFailed as failure:
            failure.show()
            outcomes.append({lookup.noun: called, "error": failure.message})
            code = 1
        else:
            outcomes.append({lookup.noun: called, "name": match["name"], "done": done})
            if not as_json:
                click.echo(f"{done} {words.identity(match)} ({match.get('displayName', '')})")
    if as_json:
        click.echo(json.dumps(outcomes, indent=2))
    return code
