"""Doing one thing to several jobs: each refusal is told, the others are done, and the exit code remembers."""

import json
from collections.abc import Callable, Iterable

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.find import find
from trainshed.cli.options import violations
from trainshed.client import ApiError, Client, Json


def each(
    client: Client,
    jobs: Iterable[str],
    act: Callable[[str], None],
    done: str,
    *,
    alive: bool = False,
    as_json: bool = False,
) -> int:
    """As JSON: one list, for each job as it was called its name and what was done, or the error.

    With `alive`, a name means the job that has not ended.
    """
    code = 0
    outcomes: list[Json] = []
    for called in jobs:
        try:
            match = find(client, called, exactly=True, alive=alive)
            act(match["name"])
        except ApiError as error:
            if error.code in (401, 403):
                raise  # it will be the same for all
            CommandFailed(f"{called}: {error.message}", violations(error.violations)).show()
            outcomes.append({"job": called, "error": error.message})
            code = 1
        except CommandFailed as failure:
            failure.show()
            outcomes.append({"job": called, "error": failure.message})
            code = 1
        else:
            outcomes.append({"job": called, "name": match["name"], "done": done})
            if not as_json:
                click.echo(f"{done} {words.identity(match)} ({match.get('displayName', '')})")
    if as_json:
        click.echo(json.dumps(outcomes, indent=2))
    return code
