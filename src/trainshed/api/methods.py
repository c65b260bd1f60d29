"""The method table: verb, path, handler and permission of every method. Nothing is routed elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainshed.api.call import ANY_SIZE, MOST_JOB, SOCKET, Handler, Method
from trainshed.api.call import row as _row
from trainshed.api.code import MOST_MANIFEST, CodeHandlers
from trainshed.api.custom_jobs import CustomJobHandlers
from trainshed.api.google_tokens import GoogleTokens, metadata_methods
from trainshed.api.health import HealthHandlers
from trainshed.api.image_caches import ImageCacheHandlers
from trainshed.api.images import ImageHandlers
from trainshed.api.log_entries import LogHandlers
from trainshed.api.metrics import MetricHandlers
from trainshed.api.models import ModelHandlers
from trainshed.api.output import OutputOfJobs
from trainshed.api.runtimes import RuntimeHandlers
from trainshed.api.shells import ShellHandlers
from trainshed.api.stacks import StackHandlers
from trainshed.api.storage_table import StorageHandlers, storage_methods
from trainshed.api.training_pipelines import PipelineHandlers
from trainshed.api.watch import WatchOfJobs
from trainshed.api.why import WhyHandlers
from trainshed.core.permission import Permission

VERSIONS = ("v1", "v1beta1")  # gcloud's beta and alpha tracks speak v1beta1; the bodies are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    custom_jobs: CustomJobHandlers
    log_entries: LogHandlers
    output: OutputOfJobs
    watch: WatchOfJobs
    health: HealthHandlers
    why: WhyHandlers
    metrics: MetricHandlers
    storage: StorageHandlers
    stacks: StackHandlers
    shells: ShellHandlers
    code: CodeHandlers
    runtimes: RuntimeHandlers
    pipelines: PipelineHandlers
    models: ModelHandlers
    images: ImageHandlers
    caches: ImageCacheHandlers
    tokens: GoogleTokens


def methods(handlers: Handlers, dialects: Iterable[Method]) -> tuple[Method, ...]:
    """The whole table. The rows of older and foreign grammars are given."""
    jobs, entries = handlers.custom_jobs, handlers.log_entries
    rows = [
        _row("GET", "/healthz", handlers.health.check, Permission.PUBLIC),
        _row("POST", "/v2/entries:list", entries.search, Permission.LOGS_READ),
        _row("GET", "/metrics", handlers.metrics.prometheus, Permission.SERVER_READ),
    ]
    for version in VERSIONS:
        parent = f"/{version}/projects/{{project}}/locations/{{location}}"
        job = f"{parent}/customJobs/{{job}}"
        rows += [
            _row("POST", f"{parent}/customJobs", jobs.create, Permission.JOBS_CREATE, most_body=MOST_JOB),
            _row("GET", f"{parent}/customJobs", jobs.find, Permission.JOBS_LIST),
            _row("GET", f"{parent}/customJobs:count", jobs.count, Permission.JOBS_LIST),
            _row("GET", f"{parent}/customJobs:watch", handlers.watch.watch, Permission.JOBS_LIST),
            _row("GET", f"{parent}/customJobs:accelerator", handlers.why.accelerator, Permission.JOBS_CREATE),
            _row("POST", f"{job}:cancel", jobs.cancel, Permission.JOBS_CANCEL),
            _row("GET", f"{job}:wait", jobs.wait, Permission.JOBS_GET),
            _row("GET", f"{job}:why", handlers.why.why_job, Permission.JOBS_GET),
            _row(
                "POST",
                f"{parent}/customJobs:explain",
                handlers.why.explain,
                Permission.JOBS_CREATE,
                most_body=MOST_JOB,
            ),
            _row("GET", f"{job}:status", jobs.status, Permission.JOBS_GET),
            _row("GET", f"{job}:events", jobs.events, Permission.JOBS_GET),
            _row("GET", f"{job}:intervals", jobs.intervals, Permission.JOBS_GET),
            _row("GET", f"{job}:tail", jobs.tail, Permission.LOGS_READ),
            _row("GET", f"{job}:output", handlers.output.read, Permission.LOGS_READ),
            _row("GET", f"{job}:metrics", handlers.metrics.window, Permission.JOBS_GET),
            _row("GET", f"{parent}/customJobs:usage", handlers.metrics.usage, Permission.JOBS_LIST),
            _row("GET", f"{job}:environment", jobs.environment, Permission.JOBS_GET),
            _row("GET", f"{job}:stacks", handlers.stacks.look, Permission.JOBS_GET),
            _row("POST", f"{job}:shell", handlers.shells.ticket, Permission.JOBS_SHELL),
            _row("GET", job, jobs.get, Permission.JOBS_GET),
            _row("DELETE", job, jobs.delete, Permission.JOBS_DELETE),
            _row("GET", f"{parent}/operations/{{operation}}", jobs.operation, Permission.OPERATIONS_GET),
            *_code(parent, handlers.code),
            *_runtimes(parent, handlers.runtimes),
            *_pipelines(parent, handlers.pipelines),
            *_models(parent, handlers.models),
            *_images(parent, handlers.images),
            *_image_caches(parent, handlers.caches),
        ]
    # The Python SDK asks for operations under /ui.
    ui = "/ui/projects/{project}/locations/{location}"
    rows += [
        _row("GET", f"{ui}/operations/{{operation}}", jobs.operation, Permission.OPERATIONS_GET),
        *_shells(handlers.shells),
    ]
    # The storage API last: its paths could match any other.
    return (*rows, *dialects, *metadata_methods(handlers.tokens), *storage_methods(handlers.storage))


def _upload(path: str, handler: Handler, permission: Permission) -> Method:
    return _row("POST", path, handler, permission, streams=True, most_body=ANY_SIZE)


def _shells(shells: ShellHandlers) -> tuple[Method, ...]:
    """Public: the page has no secrets, and the WebSocket needs a ticket."""
    page = "/shell/{project}/{location}/{job}/{task}"
    return (
        replace(_row("GET", page, shells.page, Permission.PUBLIC), page=True),
        _row(SOCKET, page, shells.talk, Permission.PUBLIC),
        _row("GET", "/console/{file}", shells.asset, Permission.PUBLIC),
    )


def _code(parent: str, folders: CodeHandlers) -> tuple[Method, ...]:
    code = f"{parent}/code/{{code}}"
    return (
        _row(
            "POST",
            f"{parent}/code:missing",
            folders.missing,
            Permission.CODE_WRITE,
            streams=True,
            most_body=MOST_MANIFEST,
        ),
        _upload(f"{parent}/code:upload", folders.upload, Permission.CODE_WRITE),
        _row("GET", code, folders.get, Permission.CODE_READ),
        _row("GET", f"{code}/blobs/{{sha256}}", folders.blob, Permission.CODE_READ),
    )


def _runtimes(parent: str, runtimes: RuntimeHandlers) -> tuple[Method, ...]:
    runtime = f"{parent}/runtimes/{{runtime}}"
    return (
        _row("GET", f"{parent}/runtimes", runtimes.find, Permission.RUNTIMES_READ),
        _row("POST", f"{parent}/runtimes:build", runtimes.build, Permission.RUNTIMES_WRITE),
        _row("POST", f"{parent}/runtimes:prune", runtimes.prune, Permission.RUNTIMES_WRITE),
        _row("GET", f"{runtime}:follow", runtimes.follow, Permission.RUNTIMES_READ),
        _row("DELETE", runtime, runtimes.remove, Permission.RUNTIMES_WRITE),
    )


def _images(parent: str, images: ImageHandlers) -> tuple[Method, ...]:
    return (
        _row("GET", f"{parent}/images", images.find, Permission.IMAGES_READ),
        _row("GET", f"{parent}/images:save", images.save, Permission.IMAGES_READ),
        _upload(f"{parent}/images:build", images.build, Permission.IMAGES_WRITE),
        _upload(f"{parent}/images:load", images.load, Permission.IMAGES_WRITE),
        _row("POST", f"{parent}/images:pull", images.pull, Permission.IMAGES_WRITE),
        _row("POST", f"{parent}/images:push", images.push, Permission.IMAGES_WRITE),
        _row("POST", f"{parent}/images:tag", images.tag, Permission.IMAGES_WRITE),
        _row("POST", f"{parent}/images:remove", images.remove, Permission.IMAGES_WRITE),
    )


def _image_caches(parent: str, caches: ImageCacheHandlers) -> tuple[Method, ...]:
    cache = f"{parent}/imageCaches/{{cache}}"
    return (
        _row("POST", f"{parent}/imageCaches", caches.create, Permission.IMAGES_WRITE),
        _row("GET", f"{parent}/imageCaches", caches.find, Permission.IMAGES_READ),
        _row("GET", cache, caches.get, Permission.IMAGES_READ),
        _row("DELETE", cache, caches.delete, Permission.IMAGES_WRITE),
    )


def _pipelines(parent: str, pipelines: PipelineHandlers) -> tuple[Method, ...]:
    pipeline = f"{parent}/trainingPipelines/{{pipeline}}"
    return (
        _row(
            "POST",
            f"{parent}/trainingPipelines",
            pipelines.create,
            Permission.JOBS_CREATE,
            most_body=MOST_JOB,
        ),
        _row("GET", f"{parent}/trainingPipelines", pipelines.find, Permission.JOBS_LIST),
        _row("POST", f"{pipeline}:cancel", pipelines.cancel, Permission.JOBS_CANCEL),
        _row("GET", pipeline, pipelines.get, Permission.JOBS_GET),
        _row("DELETE", pipeline, pipelines.delete, Permission.JOBS_DELETE),
    )


def _models(parent: str, models: ModelHandlers) -> tuple[Method, ...]:
    model = f"{parent}/models/{{model}}"
    return (
        _row("GET", f"{parent}/models", models.find, Permission.MODELS_READ),
        _row("GET", model, models.get, Permission.MODELS_READ),
        _row("DELETE", model, models.delete, Permission.MODELS_DELETE),
    )
