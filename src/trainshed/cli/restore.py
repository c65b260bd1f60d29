"""`trainshed restore`: becomes the program that makes a home of a backup, or an index of files."""

from pathlib import Path

import click

from trainshed.cli.backup import become, home_option
from trainshed.cli.failure import Misuse
from trainshed.cli.options import as_json


@click.command("restore", short_help="Make a home of a backup, or the buckets' index of their files.")
@click.argument("backup", metavar="[FILE.tar|FOLDER]", required=False)
@home_option
@click.option("--check", is_flag=True, help="Only read the backup, and say whether it is whole.")
@click.option(
    "--rebuild-index",
    is_flag=True,
    help="Without a backup: make the lost index of the home's buckets anew from the objects' files.",
)
@as_json
def command(backup: str | None, home: str | None, check: bool, rebuild_index: bool, as_json: bool) -> None:
    """Make a home of a backup, or the buckets' index of their files.

    The home must be empty, or not be there. A backup that is damaged or cut off is refused before anything is
    in place.

    --rebuild-index brings every object back that has a file of its name, with its bytes and checksums. What
    only the index knew is lost: metadata, generations, old versions, names too long for a file.

    \b
    Example:
      trainshed restore /backups/trainshed.tar --home /srv/trainshed
      trainshed restore --check /backups/trainshed.tar
      trainshed restore --rebuild-index --home /srv/trainshed
    """
    if rebuild_index == (backup is not None) or (rebuild_index and check):
        raise Misuse("name a backup, or say --rebuild-index")
    if backup is None:
        become("rebuild-index", home=home, as_json=as_json)
    else:
        words = ["--check"] if check else []
        become("restore", *words, str(Path(backup).absolute()), home=home, as_json=as_json)
