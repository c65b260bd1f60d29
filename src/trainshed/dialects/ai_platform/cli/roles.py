"""The flags of each role of a job (master, worker, parameter server), and the fields of its training input.

From their text to the API's words; pure. What machines and accelerators there are is the server's business.
"""

from collections.abc import Callable
from typing import Any

import click

from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.ai.listing import pairs
from trainshed.client import Json

ROLES = {"master": "master", "worker": "worker", "parameter-server": "parameterServer"}
COUNTED = ("worker", "parameter-server")
_PEOPLE = {"master": "the master", "worker": "each worker", "parameter-server": "each parameter server"}


def roles(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the flags of every role."""
    for role in reversed(ROLES):
        who = _PEOPLE[role]
        options = [
            click.option(f"--{role}-machine-type", metavar="TYPE", help=f"The machine of {who}."),
            click.option(f"--{role}-image-uri", metavar="IMAGE", help=f"The image {who} runs."),
            click.option(
                f"--{role}-accelerator", metavar="type=TYPE,count=N", help=f"The accelerators of {who}."
            ),
        ]
        if role in COUNTED:
            options.append(
                click.option(f"--{role}-count", type=int, metavar="N", help=f"How many {role}s there are.")
            )
        for option in reversed(options):
            function = option(function)
    return function


def fields(given: Json) -> Json:
    """The training input's fields for what was given under these flags' names, whatever else was given."""
    result: Json = {}
    for role, name in ROLES.items():
        machine, image, accelerator, count = (
            given.get(f"{role}-{what}".replace("-", "_"))
            for what in ("machine-type", "image-uri", "accelerator", "count")
        )
        if role in COUNTED and (machine is None) != (count is None):
            missing, other = ("count", "machine-type") if count is None else ("machine-type", "count")
            raise Misspelt(f"--{role}-{missing}", f"Must be specified where --{role}-{other} is.")
        if machine is not None:
            result[f"{name}Type"] = machine
        if count is not None:
            result[f"{name}Count"] = str(count)  # an int64, as the API writes them
        config: Json = {}
        if image is not None:
            config["imageUri"] = image
        if accelerator is not None:
            config["acceleratorConfig"] = _accelerator(accelerator, f"--{role}-accelerator")
        if config:
            result[f"{name}Config"] = config
    return result


def _accelerator(text: str, flag: str) -> Json:
    keys = pairs(text, flag)
    for key in keys:
        if key not in ("type", "count"):
            raise Misspelt(flag, f"valid keys are [count, type]; received: {key}")
    if not keys.get("type"):
        raise Misspelt(flag, "Key [type] required in dict arg but not provided")
    count = keys.get("count", "1")
    if not count.isascii() or not count.isdigit() or int(count) < 1:
        raise Misspelt(flag, f"The number of accelerators must be a number from 1 on: '{count}'")
    return {"count": count, "type": keys["type"].upper().replace("-", "_")}
