"""`trainshed backup`: becomes the program that copies a home, as `trainshed up` becomes the server."""

import os
import sys
from pathlib import Path

import click

from trainshed.cli.options import as_json

home_option = click.option(
    "--home", metavar="DIR", help="The server's home. [default: TRAINSHED_HOME or ~/.trainshed]"
)


@click.command("backup", short_help="Copy all that a server keeps into a file or folder, while it runs.")
@click.argument("path", metavar="FILE.tar|FOLDER")
@home_option
@as_json
def command(path: str, home: str | None, as_json: bool) -> None:
    """Copy all that a server keeps into a file or folder, while it runs.

    Jobs, buckets, code, logs, metrics, settings, the token and keys. A name that ends in .tar becomes a plain
    tar file, any other a folder; it must not exist yet. Whoever can read it has the token.

    \b
    Example:
      trainshed backup /backups/trainshed.tar
    """
    become("take", str(Path(path).absolute()), home=home, as_json=as_json)


def become(*words: str, home: str | None, as_json: bool) -> None:
    """Run the program with these words, the last of which may be a path, instead of this one."""
    # -P: a file named like a module in the current folder must not become part of it.
    program = [sys.executable, "-P", "-m", "trainshed.backup", *words]
    program += [f"--home={home}"] if home else []
    program += ["--json"] if as_json else []
    sys.stdout.flush()
    os.execv(sys.executable, program)
