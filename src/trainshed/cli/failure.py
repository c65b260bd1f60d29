"""How a command fails: one clear line, what is wrong in detail, and what would mend it."""

from collections.abc import Sequence
from typing import IO, Any

import click

from trainshed.cli.paint import Paint


class Failure(click.ClickException):
    """`error: message`, then one indented line for each detail. Exit code 1."""

    def __init__(self, message: str, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.details = tuple(details)

    def show(self, file: IO[Any] | None = None) -> None:
        paint = Paint.for_stderr()
        click.echo(f"{paint('error:', 'red')} {self.message}", err=True)
        for detail in self.details:
            click.echo(f"  {detail}", err=True)


class Misuse(Failure):
    """The command line was wrong. Exit code 2."""

    exit_code = 2
