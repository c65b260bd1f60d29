"""`trainshed whoami`: who the server takes us for, and what we may do."""

import json

import click

from trainshed.cli.login import words_of
from trainshed.cli.options import as_json, connected
from trainshed.client import Client


@click.command("whoami", short_help="Say who you are to the server, and what you may do.")
@as_json
@connected
def command(client: Client, as_json: bool) -> None:
    """Say who you are to the server, and what you may do.

    \b
    Example:
      trainshed whoami
    """
    me = client.accounts().me()
    click.echo(json.dumps(me, indent=2) if as_json else words_of(me, client.url))
