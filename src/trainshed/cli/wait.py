"""`trainshed wait`: returns when the job has ended, the moment the server knows."""

import json

import click

from trainshed.cli.failure import Misuse
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.client import Client

TIMED_OUT = 124  # as timeout(1) says it


@click.command("wait", short_help="Wait until a job has ended; exit as it did.")
@job_argument
@click.option("--timeout", metavar="TIME", help="Give up after this long, such as 90s, 15m, 2h.")
@as_json
@connected
def command(client: Client, job: str, timeout: str | None, as_json: bool) -> int:
    """Wait until a job has ended; exit as it did.

    \b
    Example:
      trainshed wait digits --timeout 15m && echo trained
    """
    from trainshed.cli.find import find
    from trainshed.cli.follow import exit_code, say_results, verdict
    from trainshed.client.api import is_final

    limit = None if timeout is None else seconds(timeout)
    custom_job = find(client, job)
    custom_job = client.wait(custom_job["name"], limit)
    status = client.status(custom_job["name"])
    click.echo(json.dumps(status, indent=2) if as_json else verdict(status))
    if is_final(custom_job):
        say_results(client, custom_job)
    return exit_code(status) if is_final(custom_job) else TIMED_OUT


def seconds(text: str) -> float:
    result = length(text)
    if result is None:
        raise Misuse(f"--timeout {text}: write a length of time as 90s, 15m or 2h")
    return result


def length(text: str) -> float | None:
    """A length of time in seconds: `90`, `90s`, `1.5h`; None where the text is none."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    try:
        seconds = float(number) * unit
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
