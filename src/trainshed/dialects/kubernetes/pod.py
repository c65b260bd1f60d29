"""Converts a Pod template of a Kubernetes manifest to pools of a customJob. Pure.

`job.py` calls it for a Pod or Job, `gang.py` for the kinds that have several templates. Faults are collected
with their path in the manifest. Each ignored field gives a note. The document may have any shape: `shape.py`
reports wrong types, and this module skips those fields.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainshed.core.jobs.named_secret import NAME_RULE, SCHEME, is_name
from trainshed.core.jobs.pool_words import PoolWords, is_late
from trainshed.core.jobs.secret import is_secret_name
from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.machine import (
    ALIYUN,
    GPU_TYPE,
    INSTANCE_TYPE,
    SELECTORS,
    USE_SPECS,
    machine_of,
)
from trainshed.dialects.kubernetes.shape import part, parts, text, texts
from trainshed.dialects.kubernetes.volume import PodVolumes
from trainshed.wire.faults import Faults
from trainshed.wire.labels import check_labels
from trainshed.wire.pool import LARGEST_PROGRAM
from trainshed.wire.scalars import shown

IMAGE_CACHE, SPOT = f"{ALIYUN}eci-image-cache", f"{ALIYUN}eci-spot-strategy"
_HONOURED = frozenset({GPU_TYPE, INSTANCE_TYPE, USE_SPECS, IMAGE_CACHE, SPOT})
POOLS = "job_spec.worker_pool_specs"
_REFERENCE = re.compile(r"\$\$\((?P<escaped>[^()$]*)\)|\$\$|\$\((?P<name>[^()]*)\)")
_METADATA = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


@dataclass(slots=True)
class Wanted:
    """A customJob's body, the manifest path of each of its parts, and notes on differences."""

    body: dict[str, Any]
    origins: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    is_indexed: bool = False  # replicas get their number as JOB_COMPLETION_INDEX
    pools: tuple[PoolWords, ...] = ()  # of a kind whose replicas have names
    chief: str = ""  # of a TFJob: what TF_CONFIG calls the first replica


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFields:
    """What `fieldRef` of a Pod gives. Values may have `$(NAME)` for what each replica knows by itself."""

    name: str
    namespace: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict[str, Any])
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    given: frozenset[str] = frozenset()  # prefixes of keys that only a cluster gives

    def value(self, asked: str) -> str | None:
        """None where it cannot be had. A label that the manifest does not have is empty, as in a cluster."""
        if asked == "metadata.name":
            return self.name
        if asked == "metadata.namespace":
            return self.namespace or "default"
        match = _METADATA.fullmatch(asked)
        if match is None:
            return None
        values = self.labels if match[1] == "labels" else self.annotations
        if match[2] not in values and match[2].startswith(tuple(self.given)):
            return None
        return text(values, match[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReader:
    """Reads the containers of one Pod template."""

    pod: Mapping[str, Any]
    path: str  # of the template's spec
    annotations: Mapping[str, Any]
    fields: PodFields
    catalogue: Catalogue
    faults: Faults
    wanted: Wanted
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # set by an operator: these win
    is_late: bool = False  # texts keep $(NAME) for what is known when a replica is placed

    def pools(self, first: int, replicas: int, counted_at: str) -> Iterator[dict[str, Any]]:
        """A pool for each container; the first has this number. `counted_at`: the path of their count."""
        containers, selector = parts(self.pod, "containers"), part(self.pod, "nodeSelector")
        if not containers:
            self.faults.add(f"{self.path}.containers", "is required: at least one container.")
        note_selector(selector, self.path, self.wanted.notes)
        volumes = PodVolumes(self.pod, self.path, self.faults)
        for at, container in enumerate(containers):
            path, place = f"{self.path}.containers[{at}]", f"{POOLS}[{first + at}]"
            self.wanted.origins |= _origins(place, path, counted_at)
            machine = machine_of(container, self.annotations, selector, self.catalogue, path, self.faults)
            self.wanted.notes += machine.notes
            pool: dict[str, Any] = {"machineSpec": machine.spec, "replicaCount": replicas}
            pool["containerSpec"] = self._program(container, path)
            pool |= {"diskSpec": machine.disk} if machine.disk else {}
            yield pool | volumes.of(container, path, place)
        self.wanted.origins |= volumes.origins

    def _program(self, container: Mapping[str, Any], path: str) -> dict[str, Any]:
        references = References(is_late=self.is_late)
        for at, variable in enumerate(parts(container, "env")):
            name, where = text(variable, "name"), f"{path}.env[{at}]"
            if name in self.env:
                if text(variable, "value") != self.env[name]:
                    self.wanted.notes.append(f"{where} is ignored: {name} is set here.")
            elif "secretKeyRef" in part(variable, "valueFrom"):
                references.named.add(name)
                reference = part(part(variable, "valueFrom"), "secretKeyRef")
                references.env[name] = self._reference(reference, f"{where}.valueFrom.secretKeyRef")
            elif "valueFrom" in variable:
                references.env[name] = self._field(part(variable, "valueFrom"), f"{where}.valueFrom")
            else:
                if is_secret_name(name) or references.names_secret(text(variable, "value")):
                    references.secrets.add(name)
                self._check_expanded(references, text(variable, "value"), f"{where}.value")
                references.env[name] = references.expand(text(variable, "value"))
        references.env |= {name: value for name, value in self.env.items() if value != f"$({name})"}
        result: dict[str, Any] = {"imageUri": text(container, "image")}
        for name in ("command", "args"):
            if words := texts(container, name):
                for at, word in enumerate(words):
                    self._check_expanded(references, word, f"{path}.{name}[{at}]")
                result[name] = [references.expand(word) for word in words]
                if any(map(references.names_secret, words)):
                    self.wanted.notes.append(
                        f"{path}.{name} has a secret in it and is shown: let the program read the variable."
                    )
        if references.left < 0:
            sentence = f"has more than {LARGEST_PROGRAM} bytes once each $(NAME) is replaced by its value."
            self.faults.add(path, sentence)
        if references.env:
            result["env"] = [
                {"name": name, "value": value, **({"secret": True} if name in references.secrets else {})}
                for name, value in references.env.items()
            ]
        return result

    def _reference(self, reference: Mapping[str, Any], path: str) -> str:
        """Of a key in a Secret of Kubernetes: here, the project's secret NAME.KEY."""
        name, key = text(reference, "name"), text(reference, "key")
        if not is_name(secret := f"{name}.{key}") or not key:
            sentence = (
                f"needs name and key: the value is that of the project's secret NAME.KEY ({NAME_RULE})."
            )
            self.faults.add(path, sentence)
        return f"{SCHEME}{secret}"

    def _check_expanded(self, references: "References", value: str, path: str) -> None:
        if secret := references.named_in(value):
            sentence = f"has $({secret}), whose value is known only when it starts: let the program read it."
            self.faults.add(path, sentence)

    def _field(self, source: Mapping[str, Any], path: str) -> str:
        asked = text(part(source, "fieldRef"), "fieldPath")
        value = self.fields.value(asked)
        if value is None and "fieldRef" in source:
            sentence = f"cannot be had: {shown(asked)}; metadata.name, namespace, labels and annotations can."
            self.faults.add(f"{path}.fieldRef.fieldPath", sentence)
        return value or ""


@dataclass(slots=True)
class References:
    """The variables of a container so far, and how much text they may still become where they are named.

    A few variables that name one another twice would else be more text than there is memory.
    """

    env: dict[str, str] = field(default_factory=dict[str, str])
    secrets: set[str] = field(default_factory=set[str])  # the names of those that are secrets
    named: set[str] = field(default_factory=set[str])  # ... of those whose values come from named secrets
    left: int = LARGEST_PROGRAM  # below 0: nothing is replaced any more
    is_late: bool = False  # `$$(NAME)` stays where NAME is known only when a replica is placed

    def names_secret(self, value: str) -> bool:
        return any(match["name"] in self.secrets for match in _REFERENCE.finditer(value))

    def named_in(self, value: str) -> str:
        """The first variable in it whose value comes from a named secret; empty where there is none."""
        names = (match["name"] for match in _REFERENCE.finditer(value) if self.named)
        return next((name for name in names if name in self.named), "")

    def expand(self, value: str) -> str:
        """`$(NAME)` is the variable's value where there is one; `$$(NAME)` is `$(NAME)`."""
        if "$" not in value:
            return value
        self.left -= sum(len(self.env.get(match["name"] or "", "")) for match in _REFERENCE.finditer(value))
        if self.left < 0:
            return value
        return _REFERENCE.sub(self._replaced, value)

    def _replaced(self, match: re.Match[str]) -> str:
        if (name := match["name"]) is not None:
            return self.env.get(name, match[0])
        if self.is_late and match["escaped"] is not None and is_late(match["escaped"]):
            return match[0]
        return match[0][1:]


def job_body(document: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """The job's name and labels."""
    metadata = part(document, "metadata")
    labels = dict(_labels(metadata, notes))
    return {"displayName": text(metadata, "name")} | ({"labels": labels} if labels else {})


def _labels(metadata: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, str]]:
    """The labels that are valid for a job."""
    for key, value in part(metadata, "labels").items():
        faults = Faults("")
        check_labels({key: str(value)}, "labels", faults)
        if faults.under("labels"):
            notes.append(f"metadata.labels.{key} is ignored: labels are small letters, digits, _ and -.")
        else:
            yield key, str(value)


def annotations_of(
    document: Mapping[str, Any], template: Mapping[str, Any], notes: list[str]
) -> Mapping[str, Any]:
    """The manifest's annotations, overridden by those of a Pod template."""
    own = part(part(document, "metadata"), "annotations")
    result = {**own, **part(part(template, "metadata"), "annotations")}
    for name in result:
        if name.startswith(ALIYUN) and name not in _HONOURED:
            notes.append(f"metadata.annotations.{name} is ignored: it is for Alibaba's machines.")
    return result


def note_selector(selector: Mapping[str, Any], inside: str, notes: list[str]) -> None:
    for name in selector:
        if name not in SELECTORS:
            notes.append(f"{inside}.nodeSelector.{name} is ignored: the server chooses where a job runs.")


def _origins(pool: str, path: str, counted_at: str) -> dict[str, str]:
    return {
        f"{pool}.container_spec.image_uri": f"{path}.image",
        f"{pool}.container_spec": path,
        f"{pool}.machine_spec": f"{path}.resources",
        f"{pool}.disk_spec": f"{path}.resources",
        f"{pool}.nfs_mounts": f"{path}.volumeMounts",
        f"{pool}.scratch_dirs": f"{path}.volumeMounts",
        f"{pool}.replica_count": counted_at,
        pool: path,
    }
