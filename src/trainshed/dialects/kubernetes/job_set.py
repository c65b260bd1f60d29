"""Converts a JobSet to the body of a customJob. For `manifest.py`. Pure.

Each replicated job becomes a pool, which has the Pods of all its jobs: those of job 0, then those of job 1,
and so on. Replicas have the names of their Pods, and their numbers where a program looks for them: in
JOB_COMPLETION_INDEX and in labels and annotations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainshed.core.jobs.pool_words import GLOBAL_INDEX, JOB_INDEX, POD_INDEX, PoolWords, host_reference
from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.gang import LABEL, GangPool, GangReader, service_names
from trainshed.dialects.kubernetes.job import RETRIES, replicas_of, restart_rule
from trainshed.dialects.kubernetes.origin import INDEX_VARIABLE
from trainshed.dialects.kubernetes.pod import PodFields, Wanted
from trainshed.dialects.kubernetes.shape import number, part, parts, text, texts
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

_JOBS = "spec.replicatedJobs"
_SET, _BATCH = "jobset.sigs.k8s.io/", "batch.kubernetes.io/"
_CASES = ("onJobFailureReasons", "onJobFailureMessagePatterns", "targetReplicatedJobs")  # of a rule
_TOGETHER = "all replicas of a job start together"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedJob:
    name: str
    path: str
    given: Mapping[str, Any]
    jobs: int
    pods: int  # of each job
    first: int  # the number of its first job in the whole set

    @property
    def spec(self) -> Mapping[str, Any]:
        return part(part(self.given, "template"), "spec")

    @property
    def pod(self) -> Mapping[str, Any]:
        return part(part(self.spec, "template"), "spec")


def convert_job_set(document: Mapping[str, Any], catalogue: Catalogue, faults: Faults) -> Wanted:
    """The requested job. Valid only if no faults were recorded."""
    reader, spec = GangReader(document, catalogue, faults), part(document, "spec")
    rows = _replicated(spec, faults)
    names = [row.name for row in rows]
    subdomain = _subdomain(part(spec, "network"), reader)
    coordinator = _coordinator(part(spec, "coordinator"), rows, faults) if spec.get("coordinator") else ""
    pools = [pod_pool(row, rows, subdomain, coordinator, reader) for row in rows]
    _note_order(spec, reader)
    scheduling = _restarts(part(spec, "failurePolicy"), rows, reader)
    scheduling |= _deadline(rows, reader)
    chosen = _success(part(spec, "successPolicy"), rows, faults)
    scheduling["successPools"] = [names.index(name) for name in chosen]
    if len(chosen) < len(rows):
        scheduling["drainDuration"] = "0s"
    return reader.convert(pools, _JOBS, scheduling)


def _replicated(spec: Mapping[str, Any], faults: Faults) -> list[ReplicatedJob]:
    """Those that have replicas."""
    rows: list[ReplicatedJob] = []
    seen: set[str] = set()
    first = 0
    for at, given in enumerate(parts(spec, "replicatedJobs")):
        name, path = text(given, "name"), f"{_JOBS}[{at}]"
        if not LABEL.fullmatch(name):
            sentence = f"must be at most 63 small letters, digits and '-', not {shown(name)}."
            faults.add(f"{path}.name", sentence)
        elif name in seen:
            faults.add(f"{path}.name", f"is given twice: {shown(name)}.")
        seen.add(name)
        jobs = number(given, "replicas")
        if jobs is not None and jobs < 0:
            faults.add(f"{path}.replicas", f"must be at least 0, not {jobs}.")
        pods = replicas_of(part(part(given, "template"), "spec"), f"{path}.template.spec", faults)
        if jobs is None or jobs > 0:
            count = 1 if jobs is None else jobs
            rows.append(ReplicatedJob(name=name, path=path, given=given, jobs=count, pods=pods, first=first))
            first += count
    return rows


def _subdomain(network: Mapping[str, Any], reader: GangReader) -> str:
    """The part of the Pods' host names behind the first point; empty where they have no names."""
    if network.get("enableDNSHostnames") is False:
        return ""
    subdomain = text(network, "subdomain")
    if subdomain and not LABEL.fullmatch(subdomain):
        sentence = f"must be at most 63 small letters, digits and '-', not {shown(subdomain)}."
        reader.faults.add("spec.network.subdomain", sentence)
    return subdomain or reader.name


def pod_pool(
    row: ReplicatedJob,
    rows: Sequence[ReplicatedJob],
    subdomain: str,
    coordinator: str,
    reader: GangReader,
) -> GangPool:
    """The Pods of a replicated job. Without a `subdomain` they have no names."""
    template = part(row.spec, "template")
    job = f"{reader.name}-{row.name}-$({JOB_INDEX})"
    host = f"{job}-$({POD_INDEX})"
    known = _known(row, rows, job, coordinator, reader)
    metadata = part(template, "metadata")
    fields = PodFields(
        name=host,
        namespace=reader.namespace,
        labels={**part(metadata, "labels"), **known},
        annotations={**part(metadata, "annotations"), **known},
        given=frozenset({_SET, _BATCH}),
    )
    hosts = (host, *service_names(f"{host}.{subdomain}", reader.namespace)) if subdomain else ()
    return GangPool(
        template=template,
        path=f"{row.path}.template.spec.template",
        replicas=row.jobs * row.pods,
        counted_at=f"{row.path}.replicas",
        fields=fields,
        words=PoolWords(hosts=hosts, group=row.pods, first=row.first),
        env={INDEX_VARIABLE: f"$({POD_INDEX})"},
    )


def _known(
    row: ReplicatedJob, rows: Sequence[ReplicatedJob], job: str, coordinator: str, reader: GangReader
) -> dict[str, str]:
    """What a cluster writes on the Pods, as labels and as annotations."""
    known = {
        f"{_SET}jobset-name": reader.name,
        f"{_SET}replicatedjob-name": row.name,
        f"{_SET}replicatedjob-replicas": str(row.jobs),
        f"{_SET}global-replicas": str(sum(other.jobs for other in rows)),
        f"{_SET}job-index": f"$({JOB_INDEX})",
        f"{_SET}job-global-index": f"$({GLOBAL_INDEX})",
        f"{_SET}restart-attempt": "$(TRAINSHED_ATTEMPT)",
        f"{_BATCH}job-completion-index": f"$({POD_INDEX})",
        f"{_BATCH}job-name": job,
        "job-name": job,
    }
    return known | ({f"{_SET}coordinator": coordinator} if coordinator else {})


def _coordinator(given: Mapping[str, Any], rows: Sequence[ReplicatedJob], faults: Faults) -> str:
    """The address of the Pod that is the coordinator."""
    name, job, pod = (
        text(given, "replicatedJob"),
        number(given, "jobIndex") or 0,
        number(given, "podIndex") or 0,
    )
    for pool, row in enumerate(rows):
        if row.name == name:
            for field, index, count in (("jobIndex", job, row.jobs), ("podIndex", pod, row.pods)):
                if not 0 <= index < count:
                    faults.add(f"spec.coordinator.{field}", f"must be 0 to {count - 1}, not {index}.")
            return host_reference(pool, job * row.pods + pod)
    faults.add("spec.coordinator.replicatedJob", f"names no replicated job: {shown(name)}.")
    return ""


def _note_order(spec: Mapping[str, Any], reader: GangReader) -> None:
    order, path = text(part(spec, "startupPolicy"), "startupPolicyOrder"), "spec.startupPolicy"
    if order == "InOrder":
        reader.notes.append(f"{path} is ignored: {_TOGETHER}.")
    elif order not in ("", "AnyOrder"):
        sentence = f"must be AnyOrder or InOrder, not {shown(order)}."
        reader.faults.add(f"{path}.startupPolicyOrder", sentence)
    for at, given in enumerate(parts(spec, "replicatedJobs")):
        for number_, other in enumerate(parts(given, "dependsOn")):
            where, status = f"{_JOBS}[{at}].dependsOn[{number_}]", text(other, "status")
            if status == "Ready":
                reader.notes.append(f"{where} is ignored: {_TOGETHER}.")
            elif status == "Complete":
                sentence = (
                    f"cannot be had: {_TOGETHER}; apply it as a manifest of its own, once the other is over."
                )
                reader.faults.add(f"{where}.status", sentence)
            else:
                reader.faults.add(f"{where}.status", f"must be Ready, not {shown(status)}.")


def _restarts(policy: Mapping[str, Any], rows: Sequence[ReplicatedJob], reader: GangReader) -> dict[str, Any]:
    limits: dict[str, int] = {}
    for row in rows:
        path = f"{row.path}.template.spec"
        limits[path] = reader.limit(row.spec, "backoffLimit", path, default=RETRIES)
        restart = text(row.pod, "restartPolicy")
        if restart not in ("", "Never", "OnFailure"):
            sentence = f"must be Never or OnFailure, not {shown(restart)}: a job is to end."
            reader.faults.add(f"{path}.template.spec.restartPolicy", sentence)
    least = min(limits.values(), default=0)
    for path, limit in limits.items():
        if limit != least:
            reader.notes.append(f"{path}.backoffLimit is read as {least}, the least of all.")
    retries = reader.limit(policy, "maxRestarts", "spec.failurePolicy", default=0)
    retries = 0 if _fails_at_once(policy, reader.faults) else retries
    strategy = text(policy, "restartStrategy")
    if strategy not in ("", "Recreate", "BlockingRecreate", "InPlaceRestart"):
        sentence = f"must be Recreate or BlockingRecreate, not {shown(strategy)}."
        reader.faults.add("spec.failurePolicy.restartStrategy", sentence)
    return restart_rule(least, retries)


def _fails_at_once(policy: Mapping[str, Any], faults: Faults) -> bool:
    """Whether the first rule is to end the set at any failure. Without a rule the set starts again."""
    rules = parts(policy, "rules")
    if rules and text(rules[0], "action") == "FailJobSet" and not any(rules[0].get(name) for name in _CASES):
        return True
    for at, rule in enumerate(rules):
        if (action := text(rule, "action")) != "RestartJobSet":
            sentence = (
                f"must be RestartJobSet, or FailJobSet in a first rule for all cases, not {shown(action)}."
            )
            faults.add(f"spec.failurePolicy.rules[{at}].action", sentence)
    return False


def _deadline(rows: Sequence[ReplicatedJob], reader: GangReader) -> dict[str, Any]:
    """The shortest of all jobs' deadlines."""
    given = [row for row in rows if number(row.spec, "activeDeadlineSeconds") is not None]
    if not given:
        return {}
    row = min(given, key=lambda row: number(row.spec, "activeDeadlineSeconds") or 0)
    return reader.timeout(row.spec, f"{row.path}.template.spec")


def _success(policy: Mapping[str, Any], rows: Sequence[ReplicatedJob], faults: Faults) -> list[str]:
    """The names of the replicated jobs whose success is that of the set."""
    path, operator = "spec.successPolicy", text(policy, "operator") or "All"
    targets, names = texts(policy, "targetReplicatedJobs"), [row.name for row in rows]
    for at, target in enumerate(targets):
        if target not in names:
            faults.add(f"{path}.targetReplicatedJobs[{at}]", f"names no replicated job: {shown(target)}.")
    chosen = [row for row in rows if not targets or row.name in targets]
    if operator not in ("All", "Any"):
        faults.add(f"{path}.operator", f"must be All or Any, not {shown(operator)}.")
    elif operator == "Any" and sum(row.jobs for row in chosen) > 1:
        sentence = "cannot be Any of several jobs: name one job under targetReplicatedJobs, or say All."
        faults.add(f"{path}.operator", sentence)
    return [row.name for row in chosen]
