"""The variables of replicas as text: one `NAME=value` a line, as a shell would read it back."""

import json
import shlex

from trainshed.cli import words
from trainshed.cli.paint import Paint
from trainshed.client import Json


def environment_text(replicas: list[Json], *, as_json: bool) -> str:
    if as_json:
        return json.dumps(replicas, indent=2)
    return "\n\n".join(_block(replica, named=len(replicas) > 1) for replica in replicas)


def _block(replica: Json, *, named: bool) -> str:
    variables = words.part(replica, "environment")
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in sorted(variables.items())]
    title = [Paint.for_stdout()(f"# {replica.get('task', '')}", "bold")] if named else []
    return "\n".join((*title, *lines))
