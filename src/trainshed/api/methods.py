"""The method table: verb, path, handler and permission of every method. Nothing is routed elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainshed.api.accounts import AccountHandlers, account_methods
from trainshed.api.call import ANY_SIZE, MOST_JOB, SOCKET, Handler, Method
from trainshed.api.call import row as _row
from trainshed.api.code import MOST_MANIFEST, CodeHandlers
from trainshed.api.console import ConsoleHandlers
from trainshed.api.costs import CostHandlers
from trainshed.api.custom_jobs import CustomJobHandlers
from trainshed.api.google_tokens import GoogleTokens, metadata_methods
from trainshed.api.graphs import GraphHandlers
from trainshed.api.health import HEALTH, HealthHandlers
from trainshed.api.image_caches import ImageCacheHandlers
from trainshed.api.images import ImageHandlers
from trainshed.api.job_lists import JobListHandlers
from trainshed.api.job_text import read_job_text
from trainshed.api.log_entries import LogHandlers
from trainshed.api.log_lines import LinesOfJobs
from trainshed.api.machine_types import MachineTypeHandlers
from trainshed.api.metrics import MetricHandlers
from trainshed.api.models import ModelHandlers
from trainshed.api.named_secrets import NamedSecretHandlers
from trainshed.api.nodes import NodeHandlers
from trainshed.api.notice_channels import NoticeChannelHandlers
from trainshed.api.output import OutputOfJobs
from trainshed.api.persistent_resources import PersistentResourceHandlers
from trainshed.api.queue import QueueHandlers
from trainshed.api.quotas import QuotaHandlers, quota_methods
from trainshed.api.results import ResultHandlers
from trainshed.api.runtimes import RuntimeHandlers
from trainshed.api.shares import ShareHandlers, share_methods
from trainshed.api.shells import ShellHandlers
from trainshed.api.stacks import StackHandlers
from trainshed.api.storage_table import StorageHandlers, storage_methods
from trainshed.api.study_views import StudyViewHandlers
from trainshed.api.training_pipelines import PipelineHandlers
from trainshed.api.tuning_jobs import TuningJobHandlers
from trainshed.api.vizier import VizierHandlers
from trainshed.api.watch import WatchOfJobs
from trainshed.api.why import WhyHandlers
from trainshed.core.accounts.permission import Permission
from trainshed.wire.job_text import MOST_TEXT

VERSIONS = ("v1", "v1beta1")  # gcloud's beta and alpha tracks speak v1beta1; the bodies are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    custom_jobs: CustomJobHandlers
    job_lists: JobListHandlers
    log_entries: LogHandlers
    output: OutputOfJobs
    lines: LinesOfJobs
    watch: WatchOfJobs
    health: HealthHandlers
    why: WhyHandlers
    machine_types: MachineTypeHandlers
    metrics: MetricHandlers
    results: ResultHandlers
    graphs: GraphHandlers
    storage: StorageHandlers
    stacks: StackHandlers
    shells: ShellHandlers
    console: ConsoleHandlers
    code: CodeHandlers
    runtimes: RuntimeHandlers
    pipelines: PipelineHandlers
    tuning_jobs: TuningJobHandlers
    study_views: StudyViewHandlers
    models: ModelHandlers
    images: ImageHandlers
    caches: ImageCacheHandlers
    nodes: NodeHandlers
    queue: QueueHandlers
    quotas: QuotaHandlers
    resources: PersistentResourceHandlers
    costs: CostHandlers
    secrets: NamedSecretHandlers
    vizier: VizierHandlers
    notices: NoticeChannelHandlers
    own_notices: NoticeChannelHandlers
    tokens: GoogleTokens
    accounts: AccountHandlers
    shares: ShareHandlers


def methods(handlers: Handlers, dialects: Iterable[Method]) -> tuple[Method, ...]:
    """The whole table. The rows of older and foreign grammars are given, and those that few servers have."""
    operation, entries = handlers.resources.operation, handlers.log_entries
    rows = [
        replace(_row("GET", HEALTH, handlers.health.check, Permission.PUBLIC), plain=True),
        _row("POST", "/v2/entries:list", entries.search, Permission.LOGS_READ),
        _row("GET", "/v1/projects", handlers.job_lists.projects, Permission.JOBS_LIST),
        _row("GET", "/metrics", handlers.metrics.prometheus, Permission.METRICS_READ),
        *account_methods(handlers.accounts),
        *share_methods(handlers.shares),
        _row("GET", "/v1/costs", handlers.costs.find, Permission.COSTS_READ, of_server=True),
        *_console(handlers.console),
        *_notices("noticeChannels", handlers.notices, Permission.NOTICES_READ, Permission.NOTICES_WRITE),
        *_notices("ownNoticeChannels", handlers.own_notices, Permission.NOTICES_OWN, Permission.NOTICES_OWN),
        *_secrets(handlers.secrets),
        *quota_methods(handlers.quotas),
    ]
    for version in VERSIONS:
        parent = f"/{version}/projects/{{project}}/locations/{{location}}"
        rows += [
            *_job_lists(parent, handlers),
            *_plans(parent, handlers),
            *_one_job(f"{parent}/customJobs/{{job}}", handlers),
            _row("GET", f"{parent}/operations/{{operation}}", operation, Permission.OPERATIONS_GET),
            *_persistent_resources(parent, handlers.resources, version),
            *_code(parent, handlers.code),
            *_runtimes(parent, handlers.runtimes),
            *_pipelines(parent, handlers.pipelines),
            *_tuning_jobs(parent, handlers),
            *_study_views(f"{parent}/studies/{{study}}", handlers.study_views),
            *_models(parent, handlers.models),
            *_images(parent, handlers.images),
            *_image_caches(parent, handlers.caches),
            *_studies(parent, handlers.vizier),
            *_trials(f"{parent}/studies/{{study}}", handlers.vizier, version),
            _row("GET", f"{parent}/nodes", handlers.nodes.find, Permission.SERVER_READ),
            _row("GET", f"{parent}/costs", handlers.costs.find, Permission.COSTS_READ),
            _row("GET", f"{parent}/queue", handlers.queue.find, Permission.JOBS_LIST),
            _row("GET", f"{parent}/quotas", handlers.quotas.find, Permission.JOBS_LIST),
            _row("GET", f"{parent}/preparations", handlers.queue.preparations, Permission.JOBS_LIST),
        ]
    # The Python SDK asks for operations under /ui.
    ui = "/ui/projects/{project}/locations/{location}"
    rows += [
        _row("GET", f"{ui}/operations/{{operation}}", operation, Permission.OPERATIONS_GET),
        *_study_operations(f"{ui}/studies/{{study}}", handlers.vizier),
        *_shells(handlers.shells),
    ]
    # The storage API last: its paths could match any other.
    return (*rows, *dialects, *metadata_methods(handlers.tokens), *storage_methods(handlers.storage))


def _job_lists(parent: str, handlers: Handlers) -> tuple[Method, ...]:
    jobs, lists = f"{parent}/customJobs", handlers.job_lists
    return (
        _row("POST", jobs, handlers.custom_jobs.create, Permission.JOBS_CREATE, most_body=MOST_JOB),
        _row("GET", jobs, lists.find, Permission.JOBS_LIST),
        _row("GET", f"{jobs}:count", lists.count, Permission.JOBS_LIST),
        _row("GET", f"{jobs}:complete", lists.complete, Permission.JOBS_LIST),
        _row("GET", f"{jobs}:watch", handlers.watch.watch, Permission.JOBS_LIST),
        _row("POST", f"{jobs}:compare", handlers.graphs.compare, Permission.JOBS_LIST),
        _row("GET", f"{jobs}:usage", handlers.metrics.usage, Permission.JOBS_LIST),
    )


def _one_job(job: str, handlers: Handlers) -> tuple[Method, ...]:
    jobs, read, read_logs = handlers.custom_jobs, Permission.JOBS_GET, Permission.LOGS_READ
    return (
        _row("POST", f"{job}:cancel", jobs.cancel, Permission.JOBS_CANCEL),
        _row("POST", f"{job}:retry", jobs.retry, Permission.JOBS_CREATE),
        _row("GET", f"{job}:wait", jobs.wait, read),
        _row("GET", f"{job}:why", handlers.why.why_job, read),
        _row("GET", f"{job}:status", jobs.status, read),
        _row("GET", f"{job}:events", jobs.events, read),
        _row("GET", f"{job}:intervals", jobs.intervals, read),
        _row("GET", f"{job}:costs", handlers.costs.of_job, Permission.COSTS_READ),
        _row("GET", f"{job}:results", handlers.results.look, read),
        _row("GET", f"{job}:tail", jobs.tail, read_logs),
        _row("GET", f"{job}:output", handlers.output.read, read_logs),
        _row("GET", f"{job}:lines", handlers.lines.lines, read_logs),
        _row("GET", f"{job}:find", handlers.lines.find, read_logs),
        _row("GET", f"{job}:metrics", handlers.metrics.window, read),
        _row("GET", f"{job}:graphs", handlers.graphs.of_job, read),
        _row("GET", f"{job}:environment", jobs.environment, read),
        _row("GET", f"{job}:stacks", handlers.stacks.look, read),
        _row("POST", f"{job}:shell", handlers.shells.ticket, Permission.JOBS_SHELL),
        _row("GET", job, jobs.get, read),
        _row("DELETE", job, jobs.delete, Permission.JOBS_DELETE),
    )


def _plans(parent: str, handlers: Handlers) -> tuple[Method, ...]:
    """What is asked before a job is there: what it may ask for, and what would become of it."""
    jobs, create = f"{parent}/customJobs", Permission.JOBS_CREATE
    return (
        _row("GET", f"{parent}/machineTypes", handlers.machine_types.find, Permission.SERVER_READ),
        _row("GET", f"{jobs}:accelerator", handlers.why.accelerator, create),
        _row("POST", f"{jobs}:explain", handlers.why.explain, create, most_body=MOST_JOB),
        _row("POST", f"{jobs}:read", read_job_text, create, streams=True, most_body=MOST_TEXT),
    )


def _upload(path: str, handler: Handler, permission: Permission) -> Method:
    return _row("POST", path, handler, permission, streams=True, most_body=ANY_SIZE)


def _shells(shells: ShellHandlers) -> tuple[Method, ...]:
    """Public: the page has no secrets, and the WebSocket needs a ticket."""
    page = "/shell/{project}/{location}/{job}/{task}"
    return (
        replace(_row("GET", page, shells.page, Permission.PUBLIC), page=True),
        _row(SOCKET, page, shells.talk, Permission.PUBLIC),
    )


def _console(console: ConsoleHandlers) -> tuple[Method, ...]:
    """Page and files are public: they have no secrets. Whoever signs in brings a ticket or the token."""
    pages = ("/console", "/console/", "/console/{page...}")
    return (
        replace(_row("GET", "/", console.root, Permission.PUBLIC), page=True),
        _row("GET", "/console/files/{file...}", console.file, Permission.PUBLIC),
        *(replace(_row("GET", path, console.page, Permission.PUBLIC), page=True) for path in pages),
        _row("GET", "/v1/server", console.server, Permission.SERVER_READ),
        _row("POST", "/v1/console:ticket", console.ticket, Permission.CONSOLE_OPEN),
        _row("POST", "/v1/console:signIn", console.sign_in, Permission.PUBLIC),
        _row("POST", "/v1/console:signOut", console.sign_out, Permission.PUBLIC),
    )


def _notices(
    name: str, notices: NoticeChannelHandlers, read: Permission, write: Permission
) -> tuple[Method, ...]:
    channels = f"/v1/projects/{{project}}/{name}"
    channel = f"{channels}/{{channel}}"
    return (
        _row("POST", channels, notices.create, write),
        _row("GET", channels, notices.find, read),
        _row("POST", f"{channel}:test", notices.test, write),
        _row("GET", channel, notices.get, read),
        _row("DELETE", channel, notices.delete, write),
    )


def _secrets(secrets: NamedSecretHandlers) -> tuple[Method, ...]:
    parent = "/v1/projects/{project}/secrets"
    secret = f"{parent}/{{secret}}"
    return (
        _row("GET", parent, secrets.find, Permission.SECRETS_READ),
        _row("POST", parent, secrets.create, Permission.SECRETS_WRITE),
        _row("POST", f"{secret}:addVersion", secrets.add_version, Permission.SECRETS_WRITE),
        _row("GET", secret, secrets.get, Permission.SECRETS_READ),
        _row("DELETE", secret, secrets.delete, Permission.SECRETS_WRITE),
        _row("POST", "/v1/secrets:rotateKey", secrets.rotate_key, Permission.SECRETS_ROTATE, of_server=True),
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
        _row("POST", f"{parent}/runtimes:prune", runtimes.prune, Permission.RUNTIMES_WRITE, of_server=True),
        _row("GET", f"{runtime}:follow", runtimes.follow, Permission.RUNTIMES_READ),
        _row("DELETE", runtime, runtimes.remove, Permission.RUNTIMES_WRITE, of_server=True),
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


def _persistent_resources(
    parent: str, resources: PersistentResourceHandlers, version: str
) -> tuple[Method, ...]:
    resource = f"{parent}/persistentResources/{{resource}}"
    return (
        _row("POST", f"{parent}/persistentResources", resources.create(version), Permission.RESOURCES_WRITE),
        _row("GET", f"{parent}/persistentResources", resources.find, Permission.RESOURCES_READ),
        _row("GET", resource, resources.get, Permission.RESOURCES_READ),
        _row("DELETE", resource, resources.delete, Permission.RESOURCES_WRITE),
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


def _tuning_jobs(parent: str, handlers: Handlers) -> tuple[Method, ...]:
    jobs, views = handlers.tuning_jobs, handlers.study_views
    parent = f"{parent}/hyperparameterTuningJobs"
    job = f"{parent}/{{study}}"
    return (
        _row("POST", parent, jobs.create, Permission.JOBS_CREATE, most_body=MOST_JOB),
        _row("GET", parent, jobs.find, Permission.JOBS_LIST),
        _row("POST", f"{job}:cancel", jobs.cancel, Permission.JOBS_CANCEL),
        *_study_views(job, views),
        _row("GET", f"{job}/trials", views.page, Permission.JOBS_GET),
        _row("POST", f"{job}/trials/{{trial}}:stop", views.stop_trial, Permission.JOBS_CANCEL),
        _row("GET", f"{job}/trials/{{trial}}", views.trial, Permission.JOBS_GET),
        _row("GET", job, jobs.get, Permission.JOBS_GET),
        _row("DELETE", job, jobs.delete, Permission.JOBS_DELETE),
    )


def _study_views(study: str, views: StudyViewHandlers) -> tuple[Method, ...]:
    """Our own methods of one study, whatever it came as."""
    return (
        _row("GET", f"{study}:analysis", views.analysis, Permission.JOBS_GET),
        _row("GET", f"{study}:curves", views.curves, Permission.JOBS_GET),
        _row("GET", f"{study}:points", views.points, Permission.JOBS_GET),
        _row("GET", f"{study}:best", views.best, Permission.JOBS_GET),
        _row("POST", f"{study}:stop", views.stop, Permission.JOBS_CANCEL),
        _row("POST", f"{study}:resume", views.resume, Permission.JOBS_CREATE),
        _row("POST", f"{study}:addTrials", views.add_trials, Permission.JOBS_CREATE),
    )


def _models(parent: str, models: ModelHandlers) -> tuple[Method, ...]:
    model = f"{parent}/models/{{model}}"
    return (
        _row("GET", f"{parent}/models", models.find, Permission.MODELS_READ),
        _row("GET", model, models.get, Permission.MODELS_READ),
        _row("DELETE", model, models.delete, Permission.MODELS_DELETE),
    )


def _studies(parent: str, vizier: VizierHandlers) -> tuple[Method, ...]:
    studies, study = f"{parent}/studies", f"{parent}/studies/{{study}}"
    return (
        _row("POST", studies, vizier.create, Permission.JOBS_CREATE),
        _row("GET", studies, vizier.find, Permission.JOBS_LIST),
        _row("POST", f"{studies}:lookup", vizier.lookup, Permission.JOBS_GET),
        _row("GET", study, vizier.get, Permission.JOBS_GET),
        _row("DELETE", study, vizier.delete, Permission.JOBS_DELETE),
        _row("POST", f"{study}:cancel", vizier.cancel, Permission.JOBS_CANCEL),
        *_study_operations(study, vizier),
    )


def _study_operations(study: str, vizier: VizierHandlers) -> tuple[Method, ...]:
    paths = (f"{study}/operations/{{operation}}", f"{study}/trials/{{trial}}/operations/{{operation}}")
    return tuple(_row("GET", path, vizier.operation, Permission.OPERATIONS_GET) for path in paths)


def _trials(study: str, vizier: VizierHandlers, version: str) -> tuple[Method, ...]:
    trials, trial = f"{study}/trials", f"{study}/trials/{{trial}}"
    suggest, check = vizier.suggest(version), vizier.check_stopping(version)
    return (
        _row("POST", f"{trials}:suggest", suggest, Permission.JOBS_CREATE),
        _row("POST", f"{trials}:listOptimalTrials", vizier.optimal, Permission.JOBS_GET),
        _row("POST", trials, vizier.create_trial, Permission.JOBS_CREATE),
        _row("GET", trials, vizier.find_trials, Permission.JOBS_GET),
        _row("POST", f"{trial}:addTrialMeasurement", vizier.measure, Permission.JOBS_UPDATE),
        _row("POST", f"{trial}:complete", vizier.complete, Permission.JOBS_UPDATE),
        _row("POST", f"{trial}:checkTrialEarlyStoppingState", check, Permission.JOBS_UPDATE),
        _row("POST", f"{trial}:stop", vizier.stop, Permission.JOBS_UPDATE),
        _row("GET", trial, vizier.get_trial, Permission.JOBS_GET),
        _row("DELETE", trial, vizier.delete_trial, Permission.JOBS_DELETE),
    )
