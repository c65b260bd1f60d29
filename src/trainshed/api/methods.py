"""THE table: every method of the API, its verb, its path and its handler. Nothing is routed elsewhere."""

from dataclasses import dataclass

from trainshed.api.call import Method
from trainshed.api.code import Folders
from trainshed.api.custom_jobs import CustomJobs
from trainshed.api.health import Health
from trainshed.api.log_entries import LogEntries
from trainshed.api.metrics import MetricsOfJobs
from trainshed.api.runtimes import RuntimesOfServer
from trainshed.api.stacks import StacksOfJobs
from trainshed.api.why import Explanations

VERSIONS = ("v1", "v1beta1")  # gcloud's beta and alpha tracks speak v1beta1; the bodies are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    custom_jobs: CustomJobs
    log_entries: LogEntries
    health: Health
    why: Explanations
    metrics: MetricsOfJobs
    stacks: StacksOfJobs
    code: Folders
    runtimes: RuntimesOfServer


def methods(handlers: Handlers) -> tuple[Method, ...]:
    jobs, entries = handlers.custom_jobs, handlers.log_entries
    rows = [
        Method(verb="GET", path="/healthz", handler=handlers.health.check, is_open=True),
        Method(verb="POST", path="/v2/entries:list", handler=entries.search),
        Method(verb="GET", path="/metrics", handler=handlers.metrics.prometheus),
    ]
    for version in VERSIONS:
        parent = f"/{version}/projects/{{project}}/locations/{{location}}"
        job = f"{parent}/customJobs/{{job}}"
        rows += [
            Method(verb="POST", path=f"{parent}/customJobs", handler=jobs.create),
            Method(verb="GET", path=f"{parent}/customJobs", handler=jobs.find),
            Method(verb="POST", path=f"{job}:cancel", handler=jobs.cancel),
            Method(verb="GET", path=f"{job}:wait", handler=jobs.wait),
            Method(verb="GET", path=f"{job}:why", handler=handlers.why.why_job),
            Method(verb="POST", path=f"{parent}/customJobs:explain", handler=handlers.why.explain),
            Method(verb="GET", path=f"{job}:status", handler=jobs.status),
            Method(verb="GET", path=f"{job}:events", handler=jobs.events),
            Method(verb="GET", path=f"{job}:tail", handler=jobs.tail),
            Method(verb="GET", path=f"{job}:metrics", handler=handlers.metrics.window),
            Method(verb="GET", path=f"{parent}/customJobs:usage", handler=handlers.metrics.usage),
            Method(verb="GET", path=f"{job}:environment", handler=jobs.environment),
            Method(verb="GET", path=f"{job}:stacks", handler=handlers.stacks.look),
            Method(verb="GET", path=job, handler=jobs.get),
            Method(verb="DELETE", path=job, handler=jobs.delete),
            Method(verb="GET", path=f"{parent}/operations/{{operation}}", handler=jobs.operation),
            *_code(parent, handlers.code),
            *_runtimes(parent, handlers.runtimes),
        ]
    # The Python SDK asks for operations under /ui.
    ui = "/ui/projects/{project}/locations/{location}"
    rows += [
        Method(verb="GET", path=f"{ui}/operations/{{operation}}", handler=jobs.operation),
        Method(verb="GET", path="/shell/{project}/{location}/{job}/{task}", handler=jobs.shell),
    ]
    return tuple(rows)


def _code(parent: str, folders: Folders) -> tuple[Method, ...]:
    code = f"{parent}/code/{{code}}"
    return (
        Method(verb="POST", path=f"{parent}/code:missing", handler=folders.missing, streams=True),
        Method(verb="POST", path=f"{parent}/code:upload", handler=folders.upload, streams=True),
        Method(verb="GET", path=code, handler=folders.get),
        Method(verb="GET", path=f"{code}/blobs/{{sha256}}", handler=folders.blob),
    )


def _runtimes(parent: str, runtimes: RuntimesOfServer) -> tuple[Method, ...]:
    one = f"{parent}/runtimes/{{runtime}}"
    return (
        Method(verb="GET", path=f"{parent}/runtimes", handler=runtimes.find),
        Method(verb="POST", path=f"{parent}/runtimes:build", handler=runtimes.build),
        Method(verb="POST", path=f"{parent}/runtimes:prune", handler=runtimes.prune),
        Method(verb="GET", path=f"{one}:follow", handler=runtimes.follow),
        Method(verb="DELETE", path=one, handler=runtimes.remove),
    )
