"""How a command fails: one clear line, what is wrong in detail, and what would mend it."""

import sys
from collections.abc import Sequence
from typing import IO, Any

import click

from trainshed.cli.paint import Paint, harmless


class CommandFailed(click.ClickException):
    """`error: message`, then one indented line for each detail. Exit code 1."""

    def __init__(self, message: str, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.details = tuple(details)

    def show(self, file: IO[Any] | None = None) -> None:
        paint = Paint.for_stderr()
        message, *details = map(_shown, (self.message, *self.details))
        click.echo(f"{paint('error:', 'red')} {message}", err=True)
        for detail in details:
            click.echo(f"  {detail}", err=True)


def _shown(text: str) -> str:
    """Names of files and words of servers are in it, and not all of them mean well by a terminal."""
    return "\n".join(map(harmless, text.split("\n"))) if sys.stderr.isatty() else text


class Misuse(CommandFailed):
    """The command line was wrong. Exit code 2."""

    exit_code = 2
