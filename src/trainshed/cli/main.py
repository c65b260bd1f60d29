"""The entry point: the menu of commands, loaded one at a time, and the place where errors become exit codes.

The menu repeats each command's first sentence so that `--help` need not import them; a test holds them equal.
"""

import gc
import importlib
import os
import sys

import click

from trainshed import __version__

SECTIONS: dict[str, dict[str, str]] = {
    "Jobs": {
        "submit": "Submit a job described in a YAML file.",
        "ls": "List jobs, newest first.",
        "show": "Show everything about a job: why it waits, how it runs, why it failed.",
        "logs": "Print what a job's replicas wrote.",
        "events": "Print what happened to a job.",
        "top": "Show what each replica uses and how far it is, live.",
        "why": "Say why a job waits, what would start it now, and when it may start.",
        "wait": "Wait until a job has ended; exit as it did.",
        "cancel": "Cancel jobs: their processes are asked to stop, then made to.",
        "delete": "Delete ended jobs with their logs.",
        "retry": "Submit a job once more, with the same spec.",
    },
    "Server": {
        "up": "Run the server in the foreground.",
        "env": "Print the variables that point gcloud and scripts at the server.",
    },
    "Other ways in": {
        "ai": "Speak gcloud's grammar: ai custom-jobs create, list, describe, cancel, stream-logs.",
        "completion": "Print the script that completes commands and jobs in your shell.",
    },
}
TRACKS = ("beta", "alpha")  # gcloud's: `trainshed beta ai …` is `trainshed ai …`

EPILOG = """\b
First steps:
  trainshed up                        in one terminal
  trainshed submit job.yaml --follow  in another

\b
A JOB is an id, the beginning of one, a display name, or a full resource name
(projects/P/locations/L/customJobs/ID), as long as it means one job only.

\b
Exit codes:
  0    done; with wait, and --follow of submit and retry: the job succeeded
  1    an error, said on stderr; or the job was cancelled, or failed without an exit code
  2    the command line was wrong
  N    with wait and --follow: the failed replica's exit code, 128 + the signal if killed
  124  wait --timeout passed before the job ended
  130  Ctrl-C: the command stopped, the job goes on
  141  the reader of the output went away

\b
Environment:
  TRAINSHED_URL, TRAINSHED_TOKEN, TRAINSHED_TOKEN_FILE, TRAINSHED_HOME,
  TRAINSHED_PROJECT, TRAINSHED_LOCATION, NO_COLOR
"""


class Menu(click.Group):
    """A group that knows its commands by name and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in TRACKS:
            return importlib.import_module("trainshed.cli.ai").track(cmd_name)
        if cmd_name not in self.list_commands(ctx):
            return None
        return importlib.import_module(f"trainshed.cli.{cmd_name}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from difflib import get_close_matches

            near = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " `trainshed --help` lists them."
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout once more at its end; there is nobody left to read it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl(list(commands.items()))


@click.group(
    cls=Menu,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", message="trainshed %(version)s")
def cli() -> None:
    """Train models on machines you own, through the API you already use."""


def run(args: list[str]) -> int:
    try:
        result: object = cli.main(args, prog_name="trainshed", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    return result if isinstance(result, int) else 0


def main() -> None:
    gc.set_threshold(100_000)  # looking for garbage while importing is a tenth of a short command's time
    sys.exit(run(sys.argv[1:]))
