"""`trainshed doctor`: checks what a server needs, here or in a cluster. It needs no server.

It takes the settings of `trainshed up`, so that it looks at the very things that `up` would use.
"""

import json
import os
import subprocess
import sys
from typing import Any

import click

from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import as_json
from trainshed.cli.paint import Paint
from trainshed.cli.up import as_flags, options
from trainshed.settings.table import DATABASE_VARIABLE, SettingsError, resolve

COLOURS = {"ok": "green", "warning": "yellow", "missing": "red"}
MISSING = "missing"
MARGIN = 9  # columns for the grade


@click.command("doctor", short_help="Check what a server needs, here or in a cluster; say what mends it.")
@click.option(
    "--image", metavar="IMAGE", default="", help="With --kubernetes: have a node pull it, as a trial."
)
@click.option(
    "--storage-class",
    metavar="NAME",
    default="",
    help="With --kubernetes: for the volume of a server in the cluster; default: the cluster's own class.",
)
@click.option("--registry", metavar="HOST", multiple=True, help="Ask whether it answers. Repeatable.")
@as_json
@options
def command(image: str, storage_class: str, registry: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Check what a server needs, here or in a cluster; say what mends it.

    It takes the settings of `trainshed up` and starts no server. With --kubernetes it asks the cluster: API,
    version, rights, namespace, nodes, names, storage, GPUs. Each line says ok, warning or missing, and below
    it stands the command that mends it. The exit code is 1 where something is missing.

    \b
    Example:
      trainshed doctor
      trainshed doctor --kubernetes --context lab --namespace ml --image python:3.11
    """
    try:
        settings, _ = resolve(as_flags(given))
    except SettingsError as error:
        raise Misuse(str(error)) from error
    if (image or storage_class) and not settings.kubernetes:
        raise Misuse("--image and --storage-class go with --kubernetes")
    env = dict(os.environ) | ({DATABASE_VARIABLE: settings.database} if settings.database else {})
    words = [
        f"--image={image}",
        f"--storage-class={storage_class}",
        *(f"--registry={host}" for host in registry),
    ]
    # -P: a file named like a module in the current folder must not become part of it.
    program = [sys.executable, "-P", "-m", "trainshed.assembly.doctor", *words, *settings.to_args()]
    rows = _watch(program, env, shown=not as_json)
    missing = sum(1 for row in rows if row["grade"] == MISSING)
    if as_json:
        click.echo(json.dumps({"fit": not missing, "findings": rows}, indent=2))
    else:
        click.echo(f"\n{closing(rows)}")
    if missing:
        sys.exit(1)


def _watch(program: list[str], env: dict[str, str], *, shown: bool) -> list[dict[str, str]]:
    """All findings; each is shown when it comes."""
    rows: list[dict[str, str]] = []
    with subprocess.Popen(
        program, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            rows.append(json.loads(line))
            if shown:
                click.echo(drawn(rows[-1]))
    if run.returncode != 0:
        raise CommandFailed("the checks were broken off")
    return rows


def drawn(row: dict[str, str]) -> str:
    paint = Paint.for_stdout()
    grade = row["grade"]
    lines = [f"{paint(grade, COLOURS[grade])}{' ' * (MARGIN - len(grade))}{row['what']}: {row['sentence']}"]
    if row["remedy"]:
        lines.append(f"{' ' * MARGIN}-> {row['remedy']}")
    return "\n".join(lines)


def closing(rows: list[dict[str, str]]) -> str:
    counts = {grade: sum(1 for row in rows if row["grade"] == grade) for grade in COLOURS}
    if counts[MISSING]:
        return f"{counts[MISSING]} missing: jobs cannot run"
    if counts["warning"]:
        return f"jobs can run; {counts['warning']} could be better"
    return "all is well"
