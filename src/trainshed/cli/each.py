"""Doing one thing to several jobs: each refusal is told, the others are done, and the exit code remembers."""

from collections.abc import Callable, Iterable

import click

from trainshed.cli import words
from trainshed.cli.failure import Failure
from trainshed.cli.find import find
from trainshed.cli.options import violations
from trainshed.client import ApiError, Client


def each(client: Client, jobs: Iterable[str], act: Callable[[str], None], done: str) -> int:
    code = 0
    for called in jobs:
        try:
            found = find(client, called)
            act(found["name"])
        except ApiError as error:
            if error.code in (401, 403):
                raise  # it will be the same for all
            Failure(f"{called}: {error.message}", violations(error.violations)).show()
            code = 1
        except Failure as failure:
            failure.show()
            code = 1
        else:
            click.echo(f"{done} {words.identity(found)} ({found.get('displayName', '')})")
    return code
