"""THE table: every method of the API, its verb, its path and its handler. Nothing is routed elsewhere."""

from dataclasses import dataclass

from trainshed.api.call import Method
from trainshed.api.custom_jobs import CustomJobs
from trainshed.api.health import Health
from trainshed.api.log_entries import LogEntries
from trainshed.api.metrics import MetricsOfJobs
from trainshed.api.why import Explanations

VERSIONS = ("v1", "v1beta1")  # gcloud's beta and alpha tracks speak v1beta1; the bodies are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    custom_jobs: CustomJobs
    log_entries: LogEntries
    health: Health
    why: Explanations
    metrics: MetricsOfJobs


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
            Method(verb="GET", path=job, handler=jobs.get),
            Method(verb="DELETE", path=job, handler=jobs.delete),
            Method(verb="GET", path=f"{parent}/operations/{{operation}}", handler=jobs.operation),
        ]
    # The Python SDK asks for operations under /ui.
    ui = "/ui/projects/{project}/locations/{location}"
    rows += [
        Method(verb="GET", path=f"{ui}/operations/{{operation}}", handler=jobs.operation),
        Method(verb="GET", path="/shell/{project}/{location}/{job}/{task}", handler=jobs.shell),
    ]
    return tuple(rows)
