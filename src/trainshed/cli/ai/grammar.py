"""How these commands refuse: `ERROR: (trainshed.ai.custom-jobs.create) …`, as scripts know it from gcloud.

Exit code 2 where the command line was wrong, 1 for everything else.
"""

from collections.abc import Sequence
from typing import IO, Any

import click

from trainshed.cli.failure import CommandFailed

# The flags people put before the verb whose value is the next word.
VALUED = (
    "--project",
    "--region",
    "--format",
    "--verbosity",
    "--account",
    "--billing-project",
    "--configuration",
)


class GcloudRefusal(CommandFailed):
    """An error in gcloud's words: which command, what is wrong, the details below it."""

    def __init__(self, path: str, message: str, details: Sequence[str] = ()) -> None:
        super().__init__(message, details)
        self.path = path.replace(" ", ".")

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"ERROR: ({self.path}) {self.message}", err=True)
        for detail in self.details:
            click.echo(detail, err=True)


class Misused(GcloudRefusal):
    """The command line was wrong."""

    exit_code = 2


class Misspelt(click.UsageError):
    """A flag whose value cannot be read. Told as gcloud tells it: `argument --flag: why`."""

    def __init__(self, flag: str, why: str) -> None:
        super().__init__(f"argument {flag}: {why}")


class Grammar(click.Group):
    """A group whose commands' errors, of whatever kind, are told as gcloud tells them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """gcloud takes a flag anywhere, also before the verb; the verb is who reads it."""
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ctx.help_option_names:
            at += 2 if args[at] in VALUED else 1
        rest = args[at:]
        end = rest.index("--") if "--" in rest else len(rest)  # what stands behind it is the program's
        return super().parse_args(ctx, [*rest[:end], *args[:at], *rest[end:]])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (GcloudRefusal, click.exceptions.NoArgsIsHelpError):
            raise
        except click.UsageError as error:
            at = error.ctx or ctx
            more = f"For all flags, run: {at.command_path} --help"
            raise Misused(at.command_path, error.format_message(), [at.get_usage(), more]) from error
        except CommandFailed as failure:
            verb = f" {ctx.invoked_subcommand}" if ctx.invoked_subcommand else ""
            kind = Misused if failure.exit_code == Misused.exit_code else GcloudRefusal
            raise kind(ctx.command_path + verb, failure.message, failure.details) from failure
