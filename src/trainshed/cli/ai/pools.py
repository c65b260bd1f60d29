"""--worker-pool-spec: one flag is one pool. From its text to the pool as the API wants it; pure.

What machines, accelerators and images there are is the server's business. An empty flag, from the second on,
holds a place: position is role.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.ai.listing import pairs
from trainshed.client import Json

FLAG = "--worker-pool-spec"
KEYS = (
    "machine-type",
    "replica-count",
    "accelerator-type",
    "accelerator-count",
    "container-image-uri",
    "executor-image-uri",
    "python-module",
)
BUILDS = ("local-package-path", "script", "output-image-uri", "requirements", "extra-packages", "extra-dirs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What the flags beside the pools say of every pool."""

    command: Sequence[str] = ()
    args: Sequence[str] = ()
    packages: Sequence[str] = ()


def pools(texts: Sequence[str], program: Program) -> list[Json]:
    found: list[Json] = []
    for text in texts:
        keys = pairs(text, FLAG) if text.strip() else {}
        if not keys and not found:
            raise Misspelt(FLAG, "the first one must not be empty: it is the primary's pool")
        found.append(_pool(keys, program) if keys else {})
    return found


def _pool(keys: dict[str, str], program: Program) -> Json:
    _check(keys)
    machine: Json = {"machineType": keys["machine-type"]}
    if kind := keys.get("accelerator-type"):
        machine["acceleratorType"] = kind.upper().replace("-", "_")
    if "accelerator-count" in keys:
        machine["acceleratorCount"] = _number(keys, "accelerator-count")
    elif kind:
        machine["acceleratorCount"] = 1
    count = _number(keys, "replica-count") if "replica-count" in keys else 1
    return {"machineSpec": machine, "replicaCount": count, **_program(keys, program)}


def _program(keys: dict[str, str], program: Program) -> Json:
    spec: dict[str, Any]
    if "container-image-uri" in keys:
        name, spec = "containerSpec", {"imageUri": keys["container-image-uri"]}
        if program.command:
            spec["command"] = list(program.command)
    else:
        name, spec = "pythonPackageSpec", {"executorImageUri": keys["executor-image-uri"]}
        spec["pythonModule"] = keys["python-module"]
        if program.packages:
            spec["packageUris"] = list(program.packages)
    if program.args:
        spec["args"] = list(program.args)
    return {name: spec}


def _check(keys: dict[str, str]) -> None:
    for key in keys:
        if key in BUILDS:
            raise Misspelt(
                FLAG,
                f"{key} would build an image from code on this machine, which this version does not do; "
                "give container-image-uri and --command, or a job file",
            )
        if key not in KEYS:
            raise Misspelt(FLAG, f"valid keys are [{', '.join(sorted(KEYS))}]; received: {key}")
    if not keys.get("machine-type"):
        raise Misspelt(FLAG, "Key [machine-type] required in dict arg but not provided")
    container, executor = keys.get("container-image-uri"), keys.get("executor-image-uri")
    if bool(container) == bool(executor):
        raise Misspelt(FLAG, "exactly one of the keys [container-image-uri, executor-image-uri] is required")
    if executor and not keys.get("python-module"):
        raise Misspelt(FLAG, "Key [python-module] is required where executor-image-uri is given")
    if container and keys.get("python-module"):
        raise Misspelt(FLAG, "Key [python-module] goes with executor-image-uri, not with container-image-uri")


def _number(keys: dict[str, str], key: str) -> int:
    try:
        return int(keys[key])
    except ValueError as error:
        raise Misspelt(FLAG, f"invalid int value for {key}: '{keys[key]}'") from error
