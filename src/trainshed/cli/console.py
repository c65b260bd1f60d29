"""`trainshed console`: opens the console in a browser that is signed in by a ticket, never by the token."""

import os
import sys
import webbrowser

import click

from trainshed.cli.complete import jobs
from trainshed.cli.options import as_json, connected
from trainshed.client import Client


@click.command("console", short_help="Open the console in your browser, signed in.")
@click.argument("job", required=False, shell_complete=jobs)
@click.option("--print", "only_print", is_flag=True, help="Print the address and open nothing.")
@as_json
@connected
def command(client: Client, job: str | None, only_print: bool, as_json: bool) -> None:
    """Open the console in your browser, signed in.

    With a JOB, its page is opened. The address holds a ticket that signs in one browser, within a minute.

    \b
    Example:
      trainshed console
      trainshed console digits
      trainshed console --print      on a machine without a browser
    """
    import json

    from trainshed.cli.find import find

    page = page_of(find(client, job)["name"]) if job else "/console/jobs"
    ticket = client.machines().console_ticket()
    address = f"{client.url}{page}#ticket={ticket['ticket']}"
    if as_json:
        click.echo(json.dumps({"url": address, "expireTime": ticket["expireTime"]}, indent=2))
        return
    if only_print or not has_browser() or not webbrowser.open(address):
        click.echo(address)
        click.echo("Open it within a minute; it signs in one browser.", err=True)
        return
    click.echo(f"Opened {client.url}{page} in your browser.")


def page_of(name: str) -> str:
    """The path of a job's page, by the full name of the job."""
    _, project, _, location, _, job = name.split("/")
    return f"/console/jobs/{project}/{location}/{job}"


def has_browser() -> bool:
    """Whether a window can open here: a browser in this terminal would not run the console."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
