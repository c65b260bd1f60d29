"""`trainshed up`: checks the settings, then becomes the server. It starts nothing beside itself."""

import os
import sys

import click

from trainshed.cli.failure import Misuse
from trainshed.settings import DATABASE_VARIABLE, FITS, Settings, SettingsError


@click.command("up", short_help="Run the server in the foreground.")
@click.option("--host", metavar="ADDRESS", help="Where to listen. [default: 127.0.0.1]")
@click.option("--port", metavar="PORT", help="The port; 0 takes a free one. [default: 8080]")
@click.option(
    "--home", metavar="DIR", help="Where everything is kept. [default: TRAINSHED_HOME or ~/.trainshed]"
)
@click.option("--no-auth", is_flag=True, help="Ask for no token. Only on a loopback address.")
@click.option("--database", metavar="URL", help="A PostgreSQL database. [default: SQLite in the home]")
@click.option(
    "--fit",
    type=click.Choice(FITS),
    help="A job larger than the machine gets all there is (shrink) or waits (strict). [default: shrink]",
)
@click.option("--cpus", metavar="N", help="How many CPUs jobs may use. [default: all]")
@click.option("--memory", metavar="SIZE", help="How much memory jobs may use, such as 8GiB. [default: all]")
@click.option("--log-quota", metavar="SIZE", help="How much a job may log. [default: 1GiB]")
@click.option(
    "--runtimes", metavar="FILE", help="Further runtimes, in TOML. [default: TRAINSHED_RUNTIMES, else none]"
)
@click.option(
    "--keep-free",
    metavar="SIZE",
    help="Unused runtimes go when the disk has less than this. [default: 10GiB, or a tenth of the disk]",
)
@click.option(
    "--warm",
    metavar="NAME",
    multiple=True,
    help="Keep a runtime's imports done: its programs start at once. Also PYTHON=MODULE,... Repeatable.",
)
@click.option(
    "--allowed-host", metavar="NAME", multiple=True, help="Another host name to answer to. Repeatable."
)
def command(
    no_auth: bool,
    database: str | None,
    allowed_host: tuple[str, ...],
    warm: tuple[str, ...],
    **given: str | None,
) -> None:
    """Run the server in the foreground.

    It prints its address when it is ready. Ctrl-C stops the server, not the jobs: they run on and are found
    again at the next start.

    \b
    Example:
      trainshed up --port 8080 --home /srv/trainshed
    """
    args = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None]
    args += [f"--allowed-host={name}" for name in allowed_host]
    args += [f"--warm={name}" for name in warm]
    args += ["--no-auth"] if no_auth else []
    args += [f"--database={database}"] if database else []
    try:
        settings = Settings.from_args(args)
    except SettingsError as error:
        raise Misuse(str(error)) from error
    if settings.database:
        os.environ[DATABASE_VARIABLE] = settings.database
    # -P: a file named like a module in the current folder must not become part of the server.
    program = [sys.executable, "-P", "-m", "trainshed.server", *settings.to_args()]
    sys.stdout.flush()
    os.execv(sys.executable, program)
