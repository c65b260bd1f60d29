"""A job's YAML file: read, checked for what no server could see, its lines remembered for the errors to come.

Three shapes mean the same: a CustomJob ({displayName, jobSpec}), a CustomJobSpec as gcloud's --config takes
it ({workerPoolSpecs, …}), and the two in one ({displayName, workerPoolSpecs, …}). What fields mean is the
server's business; here only the form is checked.
"""

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

from trainshed.cli.failure import CommandFailed
from trainshed.cli.options import violation_text
from trainshed.client import ApiViolation, Json
from trainshed.yaml_document import LARGEST, YamlFault, folded, read_document

EXAMPLE = """workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  replicaCount: 1
  containerSpec: {imageUri: "trainshed/python:3", command: [python, -c, "print('hello')"]}"""
OUTER = ("displayName", "labels", "encryptionSpec")  # what belongs to the job beside its spec


@dataclass(frozen=True, slots=True)
class JobFile:
    """The CustomJob to send, and where in the file each part of it stands."""

    name: str
    body: Json
    lines: dict[str, int]  # a field's path, folded, to its line
    bare: bool  # the spec stands at the top of the file

    def located(self, violation: ApiViolation) -> str:
        """`file:line: field: what is wrong`, with the line of the nearest thing that is in the file."""
        return f"{self.place(violation.field)}: {violation_text(violation)}"

    def place(self, field: str) -> str:
        """`file:line` of the field, or of what is nearest around it."""
        path = folded(field)
        for prefix in ("customjob.", "jobspec." if self.bare else ""):
            path = path.removeprefix(prefix)
        while path and path not in self.lines:
            path = path.rpartition(".")[0] if not path.endswith("]") else path.rpartition("[")[0]
        return f"{self.name}:{self.lines[path]}" if path else self.name


def read_text(file: str) -> tuple[str, str]:
    """What the file is called, and what is in it."""
    try:
        name, data = read_bytes(file)
        return name, data.decode("utf-8-sig")
    except OSError as error:
        raise CommandFailed(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file} is no text in UTF-8") from error


def read_bytes(file: str) -> tuple[str, bytes]:
    """The same before it is decoded. OSError where it cannot be read."""
    name = "stdin" if file == "-" else file
    with contextlib.nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
        data = stream.read(LARGEST + 1)  # also of a device that has no end
    if len(data) > LARGEST:
        raise CommandFailed(
            f"{name} is larger than {LARGEST >> 20} MiB, which no job is: is it the right file?"
        )
    return name, data


def read(name: str, text: str | bytes, *, partial: bool = False) -> JobFile:
    """Raises Failure with every fault of form and its line. A partial file may leave the pools to others."""
    return _shaped(*load(name, text, EXAMPLE), partial)


def load(name: str, text: str | bytes, example: str, before: int = 0) -> tuple[str, Json, dict[str, int]]:
    """The name, the file's fields, and the line of each. Raises CommandFailed."""
    try:
        return name, *read_document(name, text, example, before)
    except YamlFault as fault:
        raise CommandFailed(fault.message, fault.details) from fault


def _shaped(name: str, fields: Json, lines: dict[str, int], partial: bool) -> JobFile:
    by_name = {folded(key): key for key in fields}
    if "jobspec" in by_name:
        body = {_outer(key): value for key, value in fields.items()}
        return JobFile(name, body, lines, bare=False)
    if "workerpoolspecs" not in by_name and not partial:
        raise CommandFailed(
            f"{name} has neither jobSpec nor workerPoolSpecs at its top: {', '.join(fields) or 'nothing'}",
            ["a small job reads:", *EXAMPLE.splitlines()],
        )
    outer = {_outer(key): value for key, value in fields.items() if _outer(key) in OUTER}
    spec = {key: value for key, value in fields.items() if _outer(key) not in OUTER}
    return JobFile(name, {**outer, "jobSpec": spec}, lines, bare=True)


def _outer(key: str) -> str:
    """The name as the API writes it, for the few names this file must know."""
    known = {folded(item): item for item in (*OUTER, "jobSpec")}
    return known.get(folded(key), key)
