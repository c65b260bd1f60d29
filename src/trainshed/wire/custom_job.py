"""A customJob: parses a request body into a JobDraft, and renders a core Job as the answer.

Every field of Google's clients is understood. These are ours, inside `jobSpec.scheduling` (gcloud's --config
passes unknown fields on, so they work with the real gcloud too):

    priority: 10                     a higher number starts first; default 0, may be negative
    gracePeriod: "30s"               between asking a replica to stop and killing it, 0 to 600 s
    drainDuration: "60s"             how long others may go on once the primary has succeeded, up to a day
    successPools: [0, 1]             succeed with all replicas of these pools, not with the primary alone
    holdOnFailure: "1800s"           how long replicas of a failed job are kept for inspection, up to 7 days
    restartRule:
      retryExitCodes: ["129-255", "42"]    which exit codes are worth another try
      maxReplicaRestarts: 5                of one replica, within an attempt
      maxJobRetries: 3                     of the whole job
      backoff: "0.5s"                      before the first new try; doubles each time
      maxBackoff: "30s"
    hangWatch:                       jobs of several replicas are watched anyway; see docs/guide/hangs.md
      after: "1200s"                       without output, step, CPU or GPU movement; 0s: never
      exitAfter: "600s"                    one replica has ended well, the others are silent; 0s: never
      policy: WARN                         or RESTART (a new attempt, while retries are left), or FAIL

in each variable of an `env`:

    secret: true                     its value is not shown, nor stored with the job (core/jobs/secret.py)

inside a pool (containers only):

    scratchDirs: ["/cache"]          folders that are empty at the start of each run
    nfsMounts: [{mountPoint: /data, readOnly: true, …}]    at any path; read-only

a `machineType` of `custom-CPUS-MIB` (custom-0.5-512) is a machine of that size; and inside `jobSpec`:

    code: "9f86d0…"                  the folder that is the replicas' working directory (wire/code.py)
    workingDirectory: "experiments"  where in that folder each replica starts; at its top where absent
    requirements: ["numpy>=2"]       lines of a requirements file, installed on top of each pool's runtime
    network: none                    replicas reach only each other and this server (containers only)

Two shapes from published documents that Google's API refuses are understood too: a whole job file given as
`jobSpec` (`jobSpec: {displayName, jobSpec}`; the outer value wins), and `reductionServerSpec` inside a pool,
which becomes pool 2. A refusal lists every violation. This module reads neither running jobs nor the clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from trainshed.core.event import Reason
from trainshed.core.jobs.job import MAX_POOLS, Failure, Job, JobSpec, JobState, Pool
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.secret import JobSecrets
from trainshed.core.names import task_name
from trainshed.core.supplies import requirements
from trainshed.core.supplies.code import is_hash, path_fault
from trainshed.core.view import place_fault
from trainshed.wire import base, enums, job_schema
from trainshed.wire.faults import Faults
from trainshed.wire.labels import check_labels
from trainshed.wire.pool import REDUCER_POOL, Offer, PoolParser, render_pool
from trainshed.wire.scalars import shown, time_text
from trainshed.wire.scheduling import parse_scheduling, render_scheduling

__all__ = ["JobDraft", "Offer", "parse_custom_job", "parse_job_file", "render_custom_job"]

LONGEST_NAME = 128
ISOLATED = "none"  # as the value of `network`: only the job's own network
_POOLS = "job_spec.worker_pool_specs"
_PREFIXES = ("gs://", "s3://", "file://")
_SPEC_NAMES = ("jobSpec", "job_spec")
_JOB_NAMES = frozenset(job_schema.CustomJob.fields) - frozenset(_SPEC_NAMES)

# google.rpc.Code of each reason. Reasons that are missing here are UNKNOWN.
_CODES: Mapping[Reason, int] = {
    Reason.CANCELLED: 1,  # CANCELLED
    Reason.PROGRAM_FAILED: 3,  # INVALID_ARGUMENT: what Vertex AI says of a program that exits with an error
    Reason.TIMED_OUT: 4,  # DEADLINE_EXCEEDED
    Reason.WAITED_TOO_LONG: 4,
    Reason.HUNG: 4,
    Reason.TOO_LARGE: 8,  # RESOURCE_EXHAUSTED
    Reason.UNSCHEDULABLE: 8,
    Reason.SCALING_UP: 8,
    Reason.QUOTA_EXCEEDED: 8,
    Reason.WAITS_IN_CLUSTER_QUEUE: 8,
    Reason.LAUNCH_FAILED: 9,  # FAILED_PRECONDITION
    Reason.CREATION_REFUSED: 9,
    Reason.CLUSTER_QUEUE_UNUSABLE: 9,
    Reason.IMAGE_UNAVAILABLE: 9,
    Reason.CONFIG_MISSING: 9,
    Reason.MOUNT_FAILED: 9,
    Reason.OUTPUTS_LOST: 9,
    Reason.PREPARATION_FAILED: 9,
    Reason.REPLICA_KILLED: 10,  # ABORTED
    Reason.INTERRUPTED: 10,
    Reason.RETRIES_EXHAUSTED: 10,
    Reason.REPLICA_LOST: 14,  # UNAVAILABLE
}
_UNKNOWN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft:
    """A requested job: valid, without an id."""

    display_name: str
    spec: JobSpec
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    extras: Mapping[str, object] = field(default_factory=dict[str, object])
    origin: Origin | None = None
    secrets: JobSecrets = field(default_factory=dict[int, Mapping[str, str]])


def parse_custom_job(
    body: Mapping[str, object], context: Offer, before: JobSecrets | None = None
) -> JobDraft:
    """The requested job; Invalid with every violation. `before` has the values of secrets that are masked."""
    faults = Faults("custom_job")
    job = base.read(job_schema.CustomJob, _unwrapped(body), faults)
    if not job.display_name:
        faults.add("display_name", "is required.")
    elif len(job.display_name) > LONGEST_NAME:
        faults.add(
            "display_name", f"must have at most {LONGEST_NAME} characters, not {len(job.display_name)}."
        )
    check_labels(job.labels, "labels", faults)
    spec = job.job_spec or job_schema.CustomJobSpec()
    parser = PoolParser(context, faults, before)
    draft = JobDraft(
        display_name=job.display_name,
        labels=dict(job.labels),
        spec=JobSpec(
            pools=_pools(spec.worker_pool_specs, context, faults, parser),
            scheduling=parse_scheduling(spec.scheduling, "job_spec.scheduling", faults),
            output=_output(spec.base_output_directory, faults),
            web_access=spec.enable_web_access,
            code=_code(spec.code, faults),
            working_directory=_working_directory(spec, faults),
            requirements=_requirements(spec.requirements, faults),
            isolated=spec.network == ISOLATED,
            persistent_resource=spec.persistent_resource_id,
            extras=base.write(spec, job_schema.SpecExtras),
        ),
        extras=base.write(job, job_schema.JobExtras),
        secrets=parser.secrets,
    )
    _check_success(draft.spec, faults)
    faults.settle()
    return draft


def _pools(
    specs: Sequence[job_schema.WorkerPoolSpec], offer: Offer, faults: Faults, parser: PoolParser
) -> tuple[Pool, ...]:
    pools = [parser.parse(pool, f"{_POOLS}[{number}]", number) for number, pool in enumerate(specs)]
    if len(pools) > MAX_POOLS:
        faults.add(_POOLS, f"must have at most {MAX_POOLS} pools, not {len(pools)}.")
    if all(pool.is_empty for pool in pools) and not faults.under(_POOLS):
        faults.add(_POOLS, "is required: at least one pool that is not empty.")
    first = ""
    for number, pool in enumerate(specs):
        if pool.reduction_server_spec is None:
            continue
        path = f"{_POOLS}[{number}].reduction_server_spec"
        reducer = parser.parse_reducer(pool.reduction_server_spec, path)
        pools += [Pool()] * (REDUCER_POOL + 1 - len(pools))
        if first:
            faults.add(path, f"must be given once; it is in {first} already.")
        elif not pools[REDUCER_POOL].is_empty or number == REDUCER_POOL:
            faults.add(path, f"needs pool {REDUCER_POOL}, which is taken: leave that one empty or this out.")
        first = first or f"{_POOLS}[{number}]"
        pools[REDUCER_POOL] = reducer
    offer.check_together(pools, _POOLS, faults)
    return tuple(pools)


def _check_success(spec: JobSpec, faults: Faults) -> None:
    for number in spec.scheduling.success_pools:
        if number >= len(spec.pools) or spec.pools[number].is_empty:
            faults.add("job_spec.scheduling.success_pools", f"names pool {number}, which has no replicas.")


def _output(output: job_schema.GcsDestination | None, faults: Faults) -> str:
    prefix = output.output_uri_prefix if output else ""
    bare = any(prefix == known for known in _PREFIXES)
    if prefix and (bare or not prefix.startswith(("/", *_PREFIXES))):
        sentence = "must begin with gs://, s3:// or file:// and name a place there, or be an absolute path"
        faults.add("job_spec.base_output_directory.output_uri_prefix", f'{sentence}, not "{prefix[:100]}".')
    elif fault := place_fault(prefix):
        faults.add("job_spec.base_output_directory.output_uri_prefix", fault)
    return prefix


def _code(code: str, faults: Faults) -> str:
    if code and not is_hash(code):
        faults.add("job_spec.code", f"must be the id of a folder, 64 hexadecimal digits, not {shown(code)}.")
    return code


def _working_directory(spec: job_schema.CustomJobSpec, faults: Faults) -> str:
    place = spec.working_directory
    if place and not spec.code:
        faults.add("job_spec.working_directory", "is a place in the job's code, and there is no code.")
    elif place and (fault := path_fault(place)):
        faults.add("job_spec.working_directory", fault)
    return place


def _requirements(lines: tuple[str, ...], faults: Faults) -> tuple[str, ...]:
    for number, sentence in requirements.faults(lines):
        faults.add(f"job_spec.requirements[{number}]", sentence)
    return requirements.normal(lines)


def _unwrapped(body: Mapping[str, object]) -> Mapping[str, object]:
    """Unpacks a whole job file that was given as jobSpec. Any other body is returned unchanged."""
    outer = _inside(body)
    inner = _inside(outer)
    if not inner:
        return body
    result = {base.camel(name): value for name, value in body.items() if value is not None}
    about_spec = {base.camel(name): value for name, value in inner.items()}
    for name, value in outer.items():
        if name in _JOB_NAMES:
            result.setdefault(base.camel(name), value)
        elif name not in _SPEC_NAMES and value is not None:
            about_spec[base.camel(name)] = value
    result["jobSpec"] = about_spec
    return result


def _inside(mapping: Mapping[str, object]) -> Mapping[str, object]:
    """The jobSpec of the mapping; empty where it is missing or not an object."""
    spec = next((mapping[name] for name in _SPEC_NAMES if mapping.get(name) is not None), None)
    return cast("Mapping[str, object]", spec) if isinstance(spec, Mapping) else {}


def parse_job_file(document: Mapping[str, object]) -> Mapping[str, object]:
    """A job file in any of its printed shapes as the body of a create: a whole job, or its jobSpec alone."""
    if any(name in document for name in _SPEC_NAMES):
        return document
    about_job = {name: value for name, value in document.items() if name in _JOB_NAMES}
    about_spec = {name: value for name, value in document.items() if name not in _JOB_NAMES}
    return {**about_job, "jobSpec": about_spec}


def render_custom_job(job: Job, *, enum_ints: bool = False, base_url: str = "") -> dict[str, Any]:
    """The job as Google's API answers it. `base_url` is this server's address without a trailing slash."""
    status = job.status
    state = enums.state_name(status.state)
    answer: dict[str, Any] = {
        "name": job.name,
        "displayName": job.display_name,
        "jobSpec": render_spec(job.spec, enum_ints=enum_ints),
        "state": enums.render_enum(state, enums.JOB_STATES, as_ints=enum_ints),
        "createTime": time_text(job.created_at),
        **render_life(job),
    }
    if job.spec.web_access and status.state is JobState.RUNNING:
        answer["webAccessUris"] = web_access_uris(job, base_url)
    answer.update(job.extras)
    return answer


def render_life(job: Job) -> dict[str, Any]:
    """Fields that jobs and pipelines share: times after createTime, the error, labels."""
    status = job.status
    answer: dict[str, Any] = {}
    if status.started_at is not None:
        answer["startTime"] = time_text(status.started_at)
    if job.is_final and status.ended_at is not None:
        answer["endTime"] = time_text(status.ended_at)
    answer["updateTime"] = time_text(status.updated_at or job.created_at)
    if error := render_error(job):
        answer["error"] = error
    if job.labels:
        answer["labels"] = dict(job.labels)
    return answer


def render_spec(spec: JobSpec, *, enum_ints: bool = False) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "workerPoolSpecs": [render_pool(pool, enum_ints=enum_ints) for pool in spec.pools],
        "scheduling": render_scheduling(spec.scheduling, enum_ints=enum_ints),
    }
    if spec.output:
        answer["baseOutputDirectory"] = {"outputUriPrefix": spec.output}
    if spec.web_access:
        answer["enableWebAccess"] = True
    if spec.code:
        answer["code"] = spec.code
    if spec.working_directory:
        answer["workingDirectory"] = spec.working_directory
    if spec.requirements:
        answer["requirements"] = list(spec.requirements)
    if spec.persistent_resource:
        answer["persistentResourceId"] = spec.persistent_resource
    answer.update(spec.extras)
    return answer


def web_access_uris(job: Job, base_url: str) -> dict[str, str]:
    """The address of each replica's shell, by task."""
    root = f"{base_url}/shell/{job.project}/{job.location}/{job.id}"
    tasks = [task_name(replica.pool, replica.index) for replica in job.status.replicas]
    return {task: f"{root}/{task}" for task in tasks}


def _failure_text(failure: Failure) -> str:
    """The first line says what happened; some clients show only that. The other lines say why."""
    return f"{failure.message}\n{failure.verdict.text}" if failure.verdict else failure.message


def render_error(job: Job) -> Mapping[str, object] | None:
    failure = job.status.failure
    match job.status.state:
        case JobState.FAILED:
            code = _CODES.get(failure.reason, _UNKNOWN) if failure else _UNKNOWN
            return {"code": code, "message": _failure_text(failure) if failure else "The job failed."}
        case JobState.CANCELLED:
            message = failure.message if failure else "The job was cancelled."
            return {"code": _CODES[Reason.CANCELLED], "message": message}
        case _:
            return None
