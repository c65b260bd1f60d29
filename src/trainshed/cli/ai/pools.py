"""--worker-pool-spec: one flag is one pool. From its text to the pool as the API wants it; pure.

What machines, accelerators and images there are is the server's business. An empty flag, from the second on,
holds a place: position is role.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.ai.listing import pairs
from trainshed.cli.ai.local_package import BUILDS, LocalPackage
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolProgram:
    """What the flags beside the pools say of every pool."""

    command: Sequence[str] = ()
    args: Sequence[str] = ()
    packages: Sequence[str] = ()
    local: LocalPackage | None = None  # what all pools run, instead of what each would


def pools(texts: Sequence[str], program: PoolProgram) -> list[Json]:
    result: list[Json] = []
    for text in texts:
        keys = pairs(text, FLAG) if text.strip() else {}
        if program.local is not None:
            keys = _sent(keys, program.local, is_first=not result)
        if not keys and not result:
            raise Misspelt(FLAG, "the first one must not be empty: it is the primary's pool")
        result.append(_pool(keys, program) if keys else {})
    return result


def _pool(keys: dict[str, str], program: PoolProgram) -> Json:
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


def _program(keys: dict[str, str], program: PoolProgram) -> Json:
    spec: dict[str, Any]
    if "container-image-uri" in keys:
        name, spec = "containerSpec", {"imageUri": keys["container-image-uri"]}
        if command := program.command or (program.local.command if program.local else ()):
            spec["command"] = list(command)
    else:
        name, spec = "pythonPackageSpec", {"executorImageUri": keys["executor-image-uri"]}
        spec["pythonModule"] = keys["python-module"]
        if program.packages:
            spec["packageUris"] = list(program.packages)
    if program.args:
        spec["args"] = list(program.args)
    return {name: spec}


def _sent(keys: dict[str, str], local: LocalPackage, *, is_first: bool) -> dict[str, str]:
    """A pool that runs the folder: what is left of its keys is its machine, and the image below."""
    programs = ("container-image-uri", "executor-image-uri", "python-module", *BUILDS)
    odd = [key for key in programs if key in keys and keys[key] != local.image]
    if odd and not is_first:
        raise Misspelt(FLAG, f"Key [{odd[0]}] is not for this one: it runs what the first one says")
    left = {key: value for key, value in keys.items() if key not in programs}
    return {**left, "container-image-uri": local.image} if keys else {}


def _check(keys: dict[str, str]) -> None:
    for key in keys:
        if key not in KEYS:
            valid = ", ".join(sorted((*KEYS, *BUILDS)))
            raise Misspelt(FLAG, f"valid keys are [{valid}]; received: {key}")
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
