"""Converts the resources of a Kubernetes container to a machine type and GPUs. For `job.py`. Pure.

CPUs and memory become a machine type of exactly that size. Alibaba's annotations apply where `resources`
has no value, as in Elastic Container Instances.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainshed.core.queue.machine import GIB, Catalogue
from trainshed.dialects.kubernetes.shape import part, text
from trainshed.wire.faults import Faults, join
from trainshed.wire.scalars import shown

ALIYUN = "k8s.aliyun.com/"
GPU_TYPE = f"{ALIYUN}eci-gpu-type"
INSTANCE_TYPE = f"{ALIYUN}eci-instance-type"
USE_SPECS = f"{ALIYUN}eci-use-specs"
SELECTORS = ("cloud.google.com/gke-accelerator", "aliyun.accelerator/nvidia_name")
GPU, CPU, MEMORY, DISK = "nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"
DEFAULT = "n1-standard-4"
ANY_GPU = "NVIDIA_TESLA_T4"
MIB = 1 << 20

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|[eE][+-]?[0-9]+)?")
_TENS = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_UNITS = _TENS | {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", 1)}
_MOST = 2.0**63  # bytes: what Kubernetes' own numbers hold
_SPEC = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?)-([0-9]{1,5}(?:\.[0-9]{1,3})?)Gi")
# ecs.gn5i-c2g1.large: c CPUs for each g GPUs; large has 2 CPUs, xlarge 4, Nxlarge 4 N.
_INSTANCE = re.compile(r"ecs\.([a-z]+[0-9]+[a-z]*)(?:-c([0-9]+)g([0-9]+))?\.(large|([0-9]{0,3})xlarge)")
_GPUS = {
    "gn5": "P100",
    "gn5i": "P4",
    "gn6e": "V100",
    "gn6i": "T4",
    "gn6v": "V100",
    "gn7": "A100",
    "gn7e": "A100",
}
_PER_CPU = {"c": 2, "g": 4, "r": 8}  # GiB of memory for each CPU, by the family's first letter


@dataclass(slots=True)
class ContainerMachine:
    """The `machineSpec` and `diskSpec` of a container's pool, and notes on guesses."""

    spec: dict[str, object] = field(default_factory=dict[str, object])
    disk: dict[str, object] = field(default_factory=dict[str, object])
    notes: list[str] = field(default_factory=list[str])


def amount(value: object) -> float | None:
    """Kubernetes' quantity as a number: 500m, 2, 4Gi, 1e3. None where it is none, or beyond 64 bits."""
    match = _AMOUNT.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool):
        return None
    unit = match[2] or ""
    result = float(f"{match[1]}{unit}") if unit[:1] in ("e", "E") else float(match[1]) * _UNITS[unit]
    return result if abs(result) < _MOST else None


def machine_of(
    container: Mapping[str, Any],
    annotations: Mapping[str, Any],
    selector: Mapping[str, Any],
    catalogue: Catalogue,
    path: str,
    faults: Faults,
) -> ContainerMachine:
    result = ContainerMachine()
    asked = _asked(part(container, "resources"), join(path, "resources"), faults)
    cpus, memory = asked.get(CPU), asked.get(MEMORY)
    if not cpus and not memory:
        cpus, memory = _annotated(annotations, result.notes)
    if cpus or memory:
        cpus = cpus or max(1, math.ceil((memory or 0) / (4 * GIB)))
        memory = memory or cpus * 3.75 * GIB
        result.spec["machineType"] = f"custom-{round(cpus, 3):g}-{math.ceil(memory / MIB)}"
    else:
        result.spec["machineType"] = DEFAULT
    count = asked.get(GPU, 0)
    kind = _gpu_type(annotations, selector, catalogue, faults)
    if count:
        result.spec |= {"acceleratorType": kind or ANY_GPU, "acceleratorCount": int(count)}
        if not kind:
            result.notes.append(f"{path} asks for any GPU, which is written down as {ANY_GPU}.")
    elif text(annotations, GPU_TYPE):
        result.notes.append(f"{GPU_TYPE} is ignored: {path}.resources.limits has no {GPU}.")
    if DISK in asked:
        result.disk = {"bootDiskSizeGb": math.ceil(asked[DISK] / GIB)}
    return result


def _asked(resources: Mapping[str, Any], path: str, faults: Faults) -> dict[str, float]:
    """Limits; requests where there is no limit."""
    result: dict[str, float] = {}
    for which in ("requests", "limits"):
        for name, value in part(resources, which).items():
            where, quantity = f"{path}.{which}.{name}", amount(value)
            if name not in (CPU, MEMORY, GPU, DISK):
                sentence = f"cannot be had: a container may ask for {CPU}, {MEMORY}, {DISK} and {GPU}."
                faults.add(where, sentence)
            elif quantity is None:
                faults.add(where, f"must be an amount such as 2, 500m or 4Gi, not {shown(value)}.")
            elif name == GPU and quantity != int(quantity):
                faults.add(where, f"must be a whole number of GPUs, not {shown(value)}.")
            else:
                result[name] = quantity
    return result


def _annotated(annotations: Mapping[str, Any], notes: list[str]) -> tuple[float | None, float | None]:
    """CPUs and bytes of the first known size in Alibaba's annotations."""
    for name in (USE_SPECS, INSTANCE_TYPE):
        choices = [item.strip() for item in text(annotations, name).split(",") if item.strip()]
        for chosen in choices:
            if size := _size(chosen):
                if len(choices) > 1:
                    notes.append(f"Of the sizes in {name}, {chosen} is used.")
                return size[0], size[1] * GIB
        if choices:
            notes.append(f"{name} is ignored: {shown(choices[0])} is no size that is known here.")
    return None, None


def _size(name: str) -> tuple[float, float] | None:
    if match := _SPEC.fullmatch(name):
        return float(match[1]), float(match[2])
    match = _INSTANCE.fullmatch(name)
    if match is None:
        return None
    cpus = 2 if match[4] == "large" else 4 * int(match[5] or 1)
    return cpus, cpus * _PER_CPU.get(match[1][0], 4)


def _gpu_type(
    annotations: Mapping[str, Any], selector: Mapping[str, Any], catalogue: Catalogue, faults: Faults
) -> str:
    """The named accelerator; "" where none is named."""
    gpu, where = text(annotations, GPU_TYPE), f"metadata.annotations.{GPU_TYPE}"
    for name in SELECTORS:
        if not gpu and name in selector:
            gpu, where = str(selector[name]), f"spec.nodeSelector.{name}"
    if not gpu:
        families = [m[1] for instance in _instances(annotations) if (m := _INSTANCE.fullmatch(instance))]
        gpu = next((_GPUS[family] for family in families if family in _GPUS), "")
    if not gpu:
        return ""
    word = gpu.upper().replace("-", "_").removeprefix("NVIDIA_").removeprefix("TESLA_")
    names = (word, f"NVIDIA_TESLA_{word}", f"NVIDIA_{word}")
    for name in (*names, *(known for known in catalogue.accelerators if known.startswith(f"NVIDIA_{word}_"))):
        if name in catalogue.accelerators:
            return name
    known = ", ".join(name for name in catalogue.accelerators if name.startswith("NVIDIA"))
    faults.add(where, f"is no GPU that is known here: {shown(gpu)}. Known are {known}.")
    return ""


def _instances(annotations: Mapping[str, Any]) -> list[str]:
    names = f"{text(annotations, INSTANCE_TYPE)},{text(annotations, USE_SPECS)}"
    return [item.strip() for item in names.split(",")]
