"""Converts an MPIJob of Kubeflow's MPI operator to the body of a customJob. For `manifest.py`. Pure.

The launcher is the first pool, so that the job ends as it ends. The workers are the second. Workers start
what mpirun asks them to start: not through sshd, but through a program of ours (`core/jobs/remote_start.py`).
mpirun finds it by variables that each implementation of MPI has for that.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from trainshed.core.jobs.pool_words import (
    HOST,
    HOST_LIST,
    JOB_INDEX,
    LOOPBACK,
    OWN_FOLDER,
    REMOTE_PROGRAM,
    PoolWords,
    RemoteWords,
)
from trainshed.core.jobs.remote_start import SERVE
from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.gang import GangPool, GangReader, service_names
from trainshed.dialects.kubernetes.job import RETRIES, restart_rule
from trainshed.dialects.kubernetes.pod import PodFields, Wanted
from trainshed.dialects.kubernetes.replica_specs import CODES, LABEL, check_cleaning
from trainshed.dialects.kubernetes.shape import number, part, parts, text, texts
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

LAUNCHER, WORKER = "Launcher", "Worker"
HOST_FILE = "/etc/mpi/hostfile"  # where the operator's users look for it
_SPECS = "spec.mpiReplicaSpecs"
_MOST_SLOTS = 1024
_CREATION = ("", "AtStartup", "WaitForWorkersReady")
_SHELLS = ("sh", "bash")
_ONLY_SSHD = re.compile(r"\s*(?:exec\s+)?(?:\S*/)?sshd(?:\s[^;&|\n]*)?")
_PROGRAM, _LIST, _FOLDER = f"$({REMOTE_PROGRAM})", f"$({HOST_LIST})", f"$({OWN_FOLDER})"

# How each implementation writes a host of `slots` in its list, and the variables by which it starts others.
_ROWS = {"OpenMPI": f"{HOST} slots={{}}", "Intel": f"{HOST}:{{}}", "MPICH": f"{HOST}:{{}}"}
_ENV = {
    "OpenMPI": {
        "OMPI_MCA_plm_rsh_agent": _PROGRAM,
        "PRTE_MCA_plm_ssh_agent": _PROGRAM,  # version 5
        # Else its daemons leave the session: they would outlive a connection that breaks.
        "OMPI_MCA_orte_leave_session_attached": "1",
        "PRTE_MCA_prte_leave_session_attached": "1",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        # A replica's root is nobody whom mpirun has to protect.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    },
    "Intel": {"I_MPI_HYDRA_BOOTSTRAP": "ssh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": _PROGRAM},
    "MPICH": {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": _PROGRAM},
}
_LAUNCHER_ENV = {
    "OpenMPI": {"OMPI_MCA_orte_default_hostfile": _LIST, "PRTE_MCA_prte_default_hostfile": _LIST},
    "Intel": {"I_MPI_HYDRA_HOST_FILE": _LIST},
    "MPICH": {"HYDRA_HOST_FILE": _LIST},
}
# Where replicas share a machine, Open MPI's files of shared memory would have the same names, and it would
# try all networks that the machine has. What the file itself says of these is left to it.
_WORKER_SETTINGS = {"btl_vader_backing_directory": _FOLDER, "btl_sm_backing_directory": _FOLDER}
_SETTINGS = {"btl_tcp_if_include": f"$({LOOPBACK})"}


def convert_mpi_job(document: Mapping[str, Any], catalogue: Catalogue, faults: Faults) -> Wanted:
    """The requested job. Valid only if no faults were recorded."""
    reader = GangReader(document, catalogue, faults)
    spec = part(document, "spec")
    specs, policy = part(spec, "mpiReplicaSpecs"), part(spec, "runPolicy")
    workers, also_works = _workers(spec, specs, faults), spec.get("runLauncherAsWorker") is True
    library, slots = _library(spec, faults), _slots(spec, faults)
    _check(spec, faults)
    row = _ROWS[library].format(slots)
    pools = [_pool(LAUNCHER, 1, specs, row if also_works else "", library, reader)]
    if workers:
        pools.append(_pool(WORKER, workers, specs, row, library, reader))
    scheduling = _restarts(specs, policy, reader) | reader.timeout(policy, "spec.runPolicy")
    for source, path in ((policy, "spec.runPolicy"), (spec, "spec")):
        if check_cleaning(source, path, faults) == "None":
            reader.notes.append(
                f"{path}.cleanPodPolicy is ignored: workers are stopped when the launcher ends."
            )
    return reader.convert(pools, _SPECS, {**scheduling, "drainDuration": "0s"})


def _workers(spec: Mapping[str, Any], specs: Mapping[str, Any], faults: Faults) -> int:
    """How many there are. The launcher is one."""
    launchers = number(part(specs, LAUNCHER), "replicas")
    if not specs.get(LAUNCHER):
        faults.add(f"{_SPECS}.{LAUNCHER}", "is required: it runs mpirun.")
    elif launchers not in (None, 1):
        faults.add(f"{_SPECS}.{LAUNCHER}.replicas", f"must be 1: there is one launcher, not {launchers}.")
    count = number(part(specs, WORKER), "replicas") if specs.get(WORKER) else 0
    count = 1 if count is None else count
    if count < 0:
        faults.add(f"{_SPECS}.{WORKER}.replicas", f"must be at least 0, not {count}.")
    elif not count and spec.get("runLauncherAsWorker") is not True:
        sentence = "is required: at least one worker, or spec.runLauncherAsWorker: true."
        faults.add(f"{_SPECS}.{WORKER}", sentence)
    return max(count, 0)


def _library(spec: Mapping[str, Any], faults: Faults) -> str:
    library = text(spec, "mpiImplementation") or "OpenMPI"
    if library not in _ENV:
        faults.add("spec.mpiImplementation", f"must be one of {', '.join(_ENV)}, not {shown(library)}.")
        return "OpenMPI"
    return library


def _slots(spec: Mapping[str, Any], faults: Faults) -> int:
    slots = number(spec, "slotsPerWorker")
    if slots is not None and not 1 <= slots <= _MOST_SLOTS:
        faults.add("spec.slotsPerWorker", f"must be between 1 and {_MOST_SLOTS}, not {slots}.")
    return 1 if slots is None else slots


def _check(spec: Mapping[str, Any], faults: Faults) -> None:
    """What makes no difference must be a value of its field still: the launcher waits for workers anyway."""
    creation = text(spec, "launcherCreationPolicy")
    if creation not in _CREATION:
        sentence = f"must be AtStartup or WaitForWorkersReady, not {shown(creation)}."
        faults.add("spec.launcherCreationPolicy", sentence)


def _pool(
    kind: str, count: int, specs: Mapping[str, Any], row: str, library: str, reader: GangReader
) -> GangPool:
    path, template, role = f"{_SPECS}.{kind}", part(part(specs, kind), "template"), kind.lower()
    serves, metadata = kind == WORKER, part(template, "metadata")
    host = f"{reader.name}-{role}" + (f"-$({JOB_INDEX})" if serves else "")
    labels = {
        f"{LABEL}job-name": reader.name,
        f"{LABEL}job-role": role,
        f"{LABEL}replica-type": role,
        f"{LABEL}replica-index": f"$({JOB_INDEX})",
        f"{LABEL}operator-name": "mpi-operator",
    }
    fields = PodFields(
        name=host,
        namespace=reader.namespace,
        labels={**part(metadata, "labels"), **labels},
        annotations=part(metadata, "annotations"),
        given=frozenset({LABEL}),
    )
    task = f"workerpool1-$({JOB_INDEX})" if serves else "workerpool0-0"
    remote = RemoteWords(serves=serves, row=row, list_place=HOST_FILE)
    return GangPool(
        template=_serving(template, path, reader.notes) if serves else template,
        path=f"{path}.template",
        replicas=count,
        counted_at=f"{path}.replicas",
        fields=fields,
        words=PoolWords(
            hosts=(host, *service_names(f"{host}.{reader.name}", reader.namespace), task), remote=remote
        ),
        env={"K_MPI_JOB_ROLE": role, **_ENV[library], **_further(kind, library, specs)},
    )


def _further(kind: str, library: str, specs: Mapping[str, Any]) -> dict[str, str]:
    """The variables of that implementation that only the launcher or only workers have."""
    env = _LAUNCHER_ENV[library] if kind == LAUNCHER else {}
    if library != "OpenMPI":
        return dict(env)
    settings, content = _SETTINGS | (_WORKER_SETTINGS if kind == WORKER else {}), str(specs)
    own = {name: value for name, value in settings.items() if name.rpartition("_")[0] not in content}
    return env | {f"OMPI_MCA_{name}": value for name, value in own.items()}


def _serving(template: Mapping[str, Any], path: str, notes: list[str]) -> Mapping[str, Any]:
    """The template of the workers. One that has no command, or only sshd, starts what mpirun asks for.

    The command of any other runs beside what does that.
    """
    pod = part(template, "spec")
    containers = parts(pod, "containers")
    if not containers:
        return template
    command, args = texts(containers[0], "command"), texts(containers[0], "args")
    if command and _is_sshd([*command, *args]):
        what = f"{path}.template.spec.containers[0].command"
        notes.append(f"{what} is not run: workers need no sshd, and start what mpirun asks for without it.")
    elif command or args:
        return template
    serving = {**containers[0], "command": [SERVE], "args": []}
    return {**template, "spec": {**pod, "containers": [serving, *containers[1:]]}}


def _is_sshd(words: list[str]) -> bool:
    first = PurePosixPath(words[0]).name
    if first in _SHELLS and len(words) == 3 and re.fullmatch("-[a-z]*c", words[1]):
        return _ONLY_SSHD.fullmatch(words[2]) is not None
    return first == "sshd"


def _restarts(specs: Mapping[str, Any], policy: Mapping[str, Any], reader: GangReader) -> dict[str, Any]:
    """The launcher's rule holds for all: mpirun fails with its workers."""
    given = {kind: text(part(specs, kind), "restartPolicy") for kind in (LAUNCHER, WORKER)}
    for kind, rule in given.items():
        if rule and rule not in CODES:
            sentence = f"must be {', '.join(CODES)}, not {shown(rule)}: a job is to end."
            reader.faults.add(f"{_SPECS}.{kind}.restartPolicy", sentence)
    chosen = given[LAUNCHER] or "OnFailure"
    if given[WORKER] in CODES and given[WORKER] != chosen:
        note = f"{_SPECS}.{WORKER}.restartPolicy is ignored: the launcher's, {chosen}, holds for all."
        reader.notes.append(note)
    codes = CODES.get(chosen, "")
    limit = reader.limit(policy, "backoffLimit", "spec.runPolicy", default=RETRIES)
    return restart_rule(limit if codes else 0, codes=codes)
