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
    "--default-output",
    metavar="gs://BUCKET/PATH",
    help="Below it go the results of jobs that do not say where. [default: none]",
)
@click.option(
    "--keep-free",
    metavar="SIZE",
    help="Unused runtimes and images go when the disk has less. [default: 10GiB, or a tenth of the disk]",
)
@click.option(
    "--wheels",
    metavar="DIR",
    help="A folder of packages for pip, beside the index. [default: TRAINSHED_WHEELS, else none]",
)
@click.option("--offline", is_flag=True, help="Let pip ask no index: what is not in --wheels is not there.")
@click.option(
    "--warm",
    metavar="NAME",
    multiple=True,
    help="Keep a runtime's imports done: its programs start at once. Also PYTHON=MODULE,... Repeatable.",
)
@click.option(
    "--buckets",
    metavar="FILE",
    help="Buckets kept elsewhere (S3, Google's, Azure's), in TOML. [default: TRAINSHED_BUCKETS, else none]",
)
@click.option(
    "--s3", is_flag=True, help="Run an S3 store beside the server: SeaweedFS, with its data in the home."
)
@click.option(
    "--s3-bucket",
    metavar="NAME",
    multiple=True,
    help="A bucket of that store, made if need be. Repeatable. [default: training, datasets]",
)
@click.option(
    "--registry-auth",
    metavar="FILE",
    help="Credentials for registries of images, as docker login writes them; asked before the engines' own. "
    "[default: TRAINSHED_REGISTRY_AUTH]",
)
@click.option(
    "--engine",
    metavar="SOCKET",
    help="Docker's or Podman's; none: no containers. [default: TRAINSHED_ENGINE, else auto]",
)
@click.option(
    "--image-retention",
    metavar="DAYS",
    help="Pulled images go that were not used for so long, such as 30d. [default: when the disk runs low]",
)
@click.option(
    "--subnets",
    metavar="CIDR",
    help="Addresses for the networks of jobs in containers. [default: 10.210.0.0/16]",
)
@click.option(
    "--allowed-host", metavar="NAME", multiple=True, help="Another host name to answer to. Repeatable."
)
def command(
    no_auth: bool,
    offline: bool,
    s3: bool,
    s3_bucket: tuple[str, ...],
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
    args += ["--offline"] if offline else []
    args += [f"--database={database}"] if database else []
    args += [*(["--s3"] if s3 else []), *(f"--s3-bucket={name}" for name in s3_bucket)]
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
