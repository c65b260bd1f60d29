"""What the kinds of Kubeflow's training operator have in common: Pods by type of replica. Pure.

`pytorch_job.py` and `tf_job.py` call it, `mpi_job.py` for the policies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainshed.core.jobs.pool_words import JOB_INDEX, PoolWords
from trainshed.dialects.kubernetes.gang import GangPool, GangReader, service_names
from trainshed.dialects.kubernetes.job import MOST_RESTARTS, restart_rule
from trainshed.dialects.kubernetes.pod import PodFields
from trainshed.dialects.kubernetes.shape import number, part, text
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

LABEL = "training.kubeflow.org/"
# Which exit codes are tried again, by restart policy.
CODES = {"OnFailure": "1-255", "ExitCode": "128-255", "Never": ""}
_CLEANING = ("", "None", "Running", "All")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpecs:
    """The replicas of one document, by type."""

    reader: GangReader
    path: str
    operator: str
    leaders: Sequence[str]  # the types of which there is one

    @property
    def given(self) -> Mapping[str, Any]:
        return part(part(self.reader.document, "spec"), self.path.removeprefix("spec."))

    def count(self, kind: str) -> int:
        if not isinstance(self.given.get(kind), Mapping):
            return 0
        count, path = number(part(self.given, kind), "replicas"), f"{self.path}.{kind}.replicas"
        if count is None:
            return 1
        if kind in self.leaders and count != 1:
            self.reader.faults.add(path, f"must be 1: there is one {kind.lower()}, not {count}.")
            return 1
        if count < 0:
            self.reader.faults.add(path, f"must be at least 0, not {count}.")
        return max(count, 0)

    def pool(self, kind: str, count: int, env: Mapping[str, str]) -> GangPool:
        path, template = f"{self.path}.{kind}", part(part(self.given, kind), "template")
        role, metadata = kind.lower(), part(template, "metadata")
        host = f"{self.reader.name}-{role}-$({JOB_INDEX})"
        labels = {
            f"{LABEL}job-name": self.reader.name,
            f"{LABEL}replica-type": role,
            f"{LABEL}replica-index": f"$({JOB_INDEX})",
            f"{LABEL}operator-name": self.operator,
            f"{LABEL}job-role": "master" if kind in self.leaders else "",
        }
        fields = PodFields(
            name=host,
            namespace=self.reader.namespace,
            labels={**part(metadata, "labels"), **labels},
            annotations=part(metadata, "annotations"),
            given=frozenset({LABEL}),
        )
        return GangPool(
            template=template,
            path=f"{path}.template",
            replicas=count,
            counted_at=f"{path}.replicas",
            fields=fields,
            words=PoolWords(hosts=service_names(host, self.reader.namespace)),
            env=env,
        )

    def restarts(self, kinds: Sequence[str], policy: Mapping[str, Any], default: str) -> dict[str, Any]:
        """The restart rule of the job. `default`: the restart policy of a type that says none."""
        chosen = ""
        for kind in kinds:
            path = f"{self.path}.{kind}.restartPolicy"
            given = text(part(self.given, kind), "restartPolicy") or default
            if given not in CODES:
                sentence = f"must be {', '.join(CODES)}, not {shown(given)}: a job is to end."
                self.reader.faults.add(path, sentence)
            elif chosen and given != chosen:
                sentence = f"must be {chosen}, as {kinds[0]}'s is: a job has one restart rule."
                self.reader.faults.add(path, sentence)
            chosen = chosen or given
        codes = CODES.get(chosen, "")
        limit = self.reader.limit(policy, "backoffLimit", "spec.runPolicy", default=MOST_RESTARTS)
        return restart_rule(limit if codes else 0, codes=codes)


def check_cleaning(policy: Mapping[str, Any], path: str, faults: Faults) -> str:
    """Which Pods are to be removed at the end; empty where the file does not say it."""
    clean = text(policy, "cleanPodPolicy")
    if clean not in _CLEANING:
        faults.add(f"{path}.cleanPodPolicy", f"must be None, Running or All, not {shown(clean)}.")
    return clean
