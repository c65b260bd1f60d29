"""THE table: every method of the API, its verb, its path and its handler. Nothing is routed elsewhere."""

from dataclasses import dataclass

from trainshed.api.call import SOCKET, Method
from trainshed.api.code import CodeHandlers
from trainshed.api.custom_jobs import CustomJobHandlers
from trainshed.api.health import HealthHandlers
from trainshed.api.image_caches import ImageCacheHandlers
from trainshed.api.images import ImageHandlers
from trainshed.api.legacy_jobs import LegacyJobHandlers
from trainshed.api.log_entries import LogHandlers
from trainshed.api.manifests import ManifestHandlers
from trainshed.api.metrics import MetricHandlers
from trainshed.api.models import ModelHandlers
from trainshed.api.runtimes import RuntimeHandlers
from trainshed.api.shells import ShellHandlers
from trainshed.api.stacks import StackHandlers
from trainshed.api.storage_table import StorageHandlers, storage_methods
from trainshed.api.training_pipelines import PipelineHandlers
from trainshed.api.why import WhyHandlers

VERSIONS = ("v1", "v1beta1")  # gcloud's beta and alpha tracks speak v1beta1; the bodies are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    custom_jobs: CustomJobHandlers
    log_entries: LogHandlers
    health: HealthHandlers
    why: WhyHandlers
    metrics: MetricHandlers
    storage: StorageHandlers
    stacks: StackHandlers
    shells: ShellHandlers
    code: CodeHandlers
    runtimes: RuntimeHandlers
    legacy: LegacyJobHandlers
    pipelines: PipelineHandlers
    models: ModelHandlers
    images: ImageHandlers
    manifests: ManifestHandlers
    caches: ImageCacheHandlers


def methods(handlers: Handlers) -> tuple[Method, ...]:
    jobs, entries = handlers.custom_jobs, handlers.log_entries
    rows = [
        Method(verb="GET", path="/healthz", handler=handlers.health.check, is_open=True),
        Method(verb="POST", path="/v2/entries:list", handler=entries.search),
        Method(verb="GET", path="/metrics", handler=handlers.metrics.prometheus),
        *_legacy("/v1/projects/{project}", handlers.legacy),
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
            Method(verb="GET", path=f"{job}:intervals", handler=jobs.intervals),
            Method(verb="GET", path=f"{job}:tail", handler=jobs.tail),
            Method(verb="GET", path=f"{job}:metrics", handler=handlers.metrics.window),
            Method(verb="GET", path=f"{parent}/customJobs:usage", handler=handlers.metrics.usage),
            Method(verb="GET", path=f"{job}:environment", handler=jobs.environment),
            Method(verb="GET", path=f"{job}:stacks", handler=handlers.stacks.look),
            Method(verb="POST", path=f"{job}:shell", handler=handlers.shells.ticket),
            Method(verb="GET", path=job, handler=jobs.get),
            Method(verb="DELETE", path=job, handler=jobs.delete),
            Method(verb="GET", path=f"{parent}/operations/{{operation}}", handler=jobs.operation),
            *_code(parent, handlers.code),
            *_runtimes(parent, handlers.runtimes),
            *_pipelines(parent, handlers.pipelines),
            *_models(parent, handlers.models),
            *_images(parent, handlers.images),
            *_manifests(parent, handlers.manifests, handlers.caches),
        ]
    # The Python SDK asks for operations under /ui.
    ui = "/ui/projects/{project}/locations/{location}"
    rows += [
        Method(verb="GET", path=f"{ui}/operations/{{operation}}", handler=jobs.operation),
        *_shells(handlers.shells),
    ]
    return (*rows, *storage_methods(handlers.storage))


def _legacy(parent: str, older: LegacyJobHandlers) -> tuple[Method, ...]:
    job, operation = f"{parent}/jobs/{{job}}", f"{parent}/operations/{{operation}}"
    return (
        Method(verb="POST", path=f"{parent}/jobs", handler=older.create),
        Method(verb="GET", path=f"{parent}/jobs", handler=older.find),
        Method(verb="POST", path=f"{job}:cancel", handler=older.cancel),
        Method(verb="GET", path=job, handler=older.get),
        Method(verb="PATCH", path=job, handler=older.update),
        Method(verb="GET", path=f"{parent}/operations", handler=older.operations),
        Method(verb="POST", path=f"{operation}:cancel", handler=older.cancel_operation),
        Method(verb="GET", path=operation, handler=older.operation),
    )


def _shells(shells: ShellHandlers) -> tuple[Method, ...]:
    """Open to anybody: the page holds no secrets, and the conversation wants a ticket."""
    one = "/shell/{project}/{location}/{job}/{task}"
    return (
        Method(verb="GET", path=one, handler=shells.page, is_open=True),
        Method(verb=SOCKET, path=one, handler=shells.talk, is_open=True),
        Method(verb="GET", path="/console/{file}", handler=shells.asset, is_open=True),
    )


def _code(parent: str, folders: CodeHandlers) -> tuple[Method, ...]:
    code = f"{parent}/code/{{code}}"
    return (
        Method(verb="POST", path=f"{parent}/code:missing", handler=folders.missing, streams=True),
        Method(verb="POST", path=f"{parent}/code:upload", handler=folders.upload, streams=True),
        Method(verb="GET", path=code, handler=folders.get),
        Method(verb="GET", path=f"{code}/blobs/{{sha256}}", handler=folders.blob),
    )


def _runtimes(parent: str, runtimes: RuntimeHandlers) -> tuple[Method, ...]:
    one = f"{parent}/runtimes/{{runtime}}"
    return (
        Method(verb="GET", path=f"{parent}/runtimes", handler=runtimes.find),
        Method(verb="POST", path=f"{parent}/runtimes:build", handler=runtimes.build),
        Method(verb="POST", path=f"{parent}/runtimes:prune", handler=runtimes.prune),
        Method(verb="GET", path=f"{one}:follow", handler=runtimes.follow),
        Method(verb="DELETE", path=one, handler=runtimes.remove),
    )


def _images(parent: str, images: ImageHandlers) -> tuple[Method, ...]:
    return (
        Method(verb="GET", path=f"{parent}/images", handler=images.find),
        Method(verb="GET", path=f"{parent}/images:save", handler=images.save),
        Method(verb="POST", path=f"{parent}/images:build", handler=images.build, streams=True),
        Method(verb="POST", path=f"{parent}/images:load", handler=images.load, streams=True),
        Method(verb="POST", path=f"{parent}/images:pull", handler=images.pull),
        Method(verb="POST", path=f"{parent}/images:push", handler=images.push),
        Method(verb="POST", path=f"{parent}/images:tag", handler=images.tag),
        Method(verb="POST", path=f"{parent}/images:remove", handler=images.remove),
    )


def _manifests(parent: str, manifests: ManifestHandlers, caches: ImageCacheHandlers) -> tuple[Method, ...]:
    cache = f"{parent}/imageCaches/{{cache}}"
    return (
        Method(verb="POST", path=f"{parent}/manifests:apply", handler=manifests.apply),
        Method(verb="GET", path=f"{parent}/manifests", handler=manifests.find),
        Method(verb="POST", path=f"{parent}/imageCaches", handler=caches.create),
        Method(verb="GET", path=f"{parent}/imageCaches", handler=caches.find),
        Method(verb="GET", path=cache, handler=caches.get),
        Method(verb="DELETE", path=cache, handler=caches.delete),
    )


def _pipelines(parent: str, pipelines: PipelineHandlers) -> tuple[Method, ...]:
    one = f"{parent}/trainingPipelines/{{pipeline}}"
    return (
        Method(verb="POST", path=f"{parent}/trainingPipelines", handler=pipelines.create),
        Method(verb="GET", path=f"{parent}/trainingPipelines", handler=pipelines.find),
        Method(verb="POST", path=f"{one}:cancel", handler=pipelines.cancel),
        Method(verb="GET", path=one, handler=pipelines.get),
        Method(verb="DELETE", path=one, handler=pipelines.delete),
    )


def _models(parent: str, models: ModelHandlers) -> tuple[Method, ...]:
    one = f"{parent}/models/{{model}}"
    return (
        Method(verb="GET", path=f"{parent}/models", handler=models.find),
        Method(verb="GET", path=one, handler=models.get),
        Method(verb="DELETE", path=one, handler=models.delete),
    )
