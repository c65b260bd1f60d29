"""`trainshed up`: checks the settings, then becomes the server. It starts nothing beside itself.

Its options are the table in `trainshed.settings.table`; there is nothing to add here for a new setting.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from trainshed.cli.become_server import become_server
from trainshed.cli.failure import Misuse
from trainshed.settings.row import shown
from trainshed.settings.table import SETTINGS, Settings, SettingsError, resolve


def options(function: Callable[..., None]) -> Callable[..., None]:
    """The table's rows as options, in its order."""
    for row in reversed(tuple(SETTINGS.values())):
        help = f"{row.help}{' Repeatable.' if row.many else ''} [default: {row.default_words}]"
        if row.is_switch:
            names = f"{row.flag}/{row.negative}"
            function = click.option(names, row.name, default=None, help=help)(function)
        else:
            option = click.option(row.flag, row.name, metavar=row.metavar, multiple=row.many, help=help)
            function = option(function)
    return function


@click.command("up", short_help="Run the server in the foreground.")
@options
@click.option("--print-settings", is_flag=True, help="Only print each setting and where it comes from.")
@click.option("--json", "as_json", is_flag=True, help="With --print-settings: print JSON, for scripts.")
def command(print_settings: bool, as_json: bool, **given: Any) -> None:
    """Run the server in the foreground.

    It prints its address when it is ready. Ctrl-C stops the server, not the jobs: they run on and are found
    again at the next start.

    Each setting is also a variable (--log-quota: TRAINSHED_LOG_QUOTA) and a key in a settings file (log_quota
    in trainshed.toml). A flag wins over the variable, that over the file.

    \b
    Example:
      trainshed up --port 8080 --home /srv/trainshed
    """
    if as_json and not print_settings:
        raise Misuse("--json goes with --print-settings")
    try:
        settings, sources = resolve(as_flags(given))
    except SettingsError as error:
        raise Misuse(str(error)) from error
    if print_settings:
        click.echo(_settings_text(settings, sources, as_json=as_json))
        return
    become_server(settings)


def as_flags(given: Mapping[str, Any]) -> list[str]:
    """What click read, as flags again: one place checks them, whoever starts the server."""
    args: list[str] = []
    for name, value in given.items():
        row = SETTINGS[name]
        if row.is_switch:
            args += [] if value is None else [row.flag if value else row.negative]
        else:
            args += [f"{row.flag}={item}" for item in (value if row.many else (value,)) if item is not None]
    return args


def _settings_text(settings: Settings, sources: Mapping[str, str], *, as_json: bool) -> str:
    values = {name: _shown(name, getattr(settings, name)) for name in SETTINGS}
    if as_json:
        rows = [{"name": name, "value": value, "from": sources[name]} for name, value in values.items()]
        return json.dumps(rows, indent=2)
    from trainshed.cli.table import table

    cells = [[name, value or SETTINGS[name].default_words, sources[name]] for name, value in values.items()]
    return table(["SETTING", "VALUE", "FROM"], cells, whole=True)


def _shown(name: str, value: object) -> str:
    """As it is written, a password excepted."""
    text = shown(value)
    before, at, after = text.rpartition("@")
    if name == "database" and at:
        scheme, mark, user = before.rpartition("//")
        return f"{scheme}{mark}{user.partition(':')[0]}:***@{after}"
    return text
