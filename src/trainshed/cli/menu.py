"""The menu as click knows it: commands by name, each imported when asked for; errors become exit codes.

Which commands there are, and what is said of each, stands in `main.py`, which needs no click.
"""

import importlib
import sys

import click

from trainshed import __version__
from trainshed.cli.main import DIALECTS, EPILOG, SECTIONS, SYNONYMS, TRACKS, hang_up


class Menu(click.Group):
    """A group that knows its commands by name and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in TRACKS:
            return importlib.import_module("trainshed.cli.ai").track(cmd_name)
        if cmd_name not in self.list_commands(ctx):
            return None
        module = DIALECTS.get(cmd_name) or f"trainshed.cli.{cmd_name.replace('-', '_')}"
        return importlib.import_module(module).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from difflib import get_close_matches

            near = get_close_matches(name, [*self.list_commands(ctx), *SYNONYMS], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " `trainshed --help` lists them."
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            ctx.exit(hang_up())
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
    if args[:1] and args[0] in SYNONYMS:
        from trainshed.cli.synonyms import meant

        args = meant(args)
    try:
        result: object = cli.main(args, prog_name="trainshed", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    return result if isinstance(result, int) else 0
