"""A group of commands known by name, each imported when it is asked for: `--help` needs none of them."""

import importlib
from collections.abc import Mapping

import click

from trainshed.cli.ai.grammar import Grammar

MODULES = {"list": "list_jobs"}  # a module called list would hide Python's own in its package


class Verbs(Grammar):
    """The verbs of one kind of job: `package` holds a module of the same name for each."""

    def __init__(self, name: str, package: str, verbs: Mapping[str, str], help: str) -> None:
        super().__init__(name, help=help)
        self._package = package
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._verbs:
            return None
        module = MODULES.get(cmd_name, cmd_name.replace("-", "_"))
        return importlib.import_module(f"{self._package}.{module}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._verbs.items()))
