"""The services behind HTTP: the table of methods at the server's address, storage under Google's names."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Scope

from trainshed import __version__
from trainshed.api.accounts import AccountHandlers
from trainshed.api.app import make_app
from trainshed.api.call import Method
from trainshed.api.code import CodeHandlers
from trainshed.api.console import ConsoleHandlers
from trainshed.api.costs import CostHandlers
from trainshed.api.custom_jobs import CustomJobHandlers
from trainshed.api.ending import Ending, ServerEnds
from trainshed.api.google_hosts import GoogleHosts
from trainshed.api.google_tokens import GoogleTokens
from trainshed.api.graphs import GraphHandlers
from trainshed.api.health import HealthHandlers
from trainshed.api.image_caches import ImageCacheHandlers
from trainshed.api.images import ImageHandlers
from trainshed.api.job_lists import JobListHandlers
from trainshed.api.job_view import OwnJobFields
from trainshed.api.log_entries import LogHandlers
from trainshed.api.log_lines import LinesOfJobs
from trainshed.api.machine_types import MachineTypeHandlers
from trainshed.api.methods import Handlers, methods
from trainshed.api.metrics import MetricHandlers
from trainshed.api.models import ModelHandlers
from trainshed.api.named_secrets import NamedSecretHandlers
from trainshed.api.nodes import NodeHandlers
from trainshed.api.notice_channels import NoticeChannelHandlers
from trainshed.api.output import OutputOfJobs
from trainshed.api.persistent_resources import PersistentResourceHandlers
from trainshed.api.queue import QueueHandlers
from trainshed.api.quotas import QuotaHandlers
from trainshed.api.results import ResultHandlers
from trainshed.api.runtimes import RuntimeHandlers
from trainshed.api.shares import ShareHandlers
from trainshed.api.shells import ShellHandlers
from trainshed.api.stacks import StackHandlers
from trainshed.api.storage_table import StorageHandlers, storage_methods
from trainshed.api.study_views import StudyViewHandlers
from trainshed.api.training_pipelines import PipelineHandlers
from trainshed.api.tuning_jobs import TuningJobHandlers
from trainshed.api.vizier import VizierHandlers
from trainshed.api.watch import WatchOfJobs
from trainshed.api.why import WhyHandlers
from trainshed.assembly.access import Access
from trainshed.assembly.services import Services
from trainshed.assembly.shared import SharedParts
from trainshed.assembly.studies import Studies
from trainshed.control.resume import committed_outputs
from trainshed.core.caller_port import CallerConnection, Callers
from trainshed.dialects.ai_platform.http import AiPlatformHandlers, ai_platform_methods
from trainshed.dialects.ai_platform.service import AiPlatformJobService
from trainshed.dialects.ai_platform.study_service import AiPlatformStudyService
from trainshed.dialects.kubernetes.experiment_service import ExperimentService
from trainshed.dialects.kubernetes.http import ManifestHandlers, kubernetes_methods
from trainshed.dialects.kubernetes.service import ManifestService
from trainshed.identity.origin import foreign_headers
from trainshed.service.access import AccessService
from trainshed.service.accounts import AccountService
from trainshed.service.asked_studies import AskedStudies
from trainshed.service.hints import JobHints
from trainshed.service.job_lists import JobLists
from trainshed.service.notices import NoticeService
from trainshed.service.pipelines import PipelineService
from trainshed.service.sign_in import SignInService

CONNECTION = "connection"  # in a request's state: what is remembered for all requests of its connection
INIT = "init"  # in that: the pid of a container's init, where all who connect are in that container
JOB = "job"  # ... the job of a pod, where the connection is from there
_NOWHERE = ("", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpApi:
    methods: tuple[Method, ...]
    app: ASGIApp
    app_of: Callable[[tuple[Method, ...]], ASGIApp]  # the same with some of the methods alone
    google: ASGIApp  # what is served under Google's names
    end: Ending  # to be told when the server begins to stop


def make_api(
    shared: SharedParts,
    services: Services,
    studies: Studies,
    job_hints: JobHints,
    access: Access,
    callers: Callers,
    notices: NoticeService,
) -> HttpApi:
    gate = access.gate
    sign_ins = SignInService(gate.authenticator, access.sessions, shared.clock, access.accounts.end_session)
    handlers = make_handlers(services, studies, job_hints, sign_ins, access.accounts, notices)
    others = dialect_methods(services, studies)
    handlers.console.public_url = shared.settings.public_url
    if shared.settings.oidc_issuer:
        others = (*others, *add_provider(shared, access, handlers))
    hosts = own_hosts(shared)
    storage = storage_methods(handlers.storage)
    table = methods(handlers, others)

    end = Ending(ServerEnds)

    def app_of(rows: tuple[Method, ...]) -> ASGIApp:
        return make_app(rows, gate, lambda headers, page: foreign_headers(headers, hosts, page=page), end)

    return HttpApi(
        methods=table,
        app=app_of(table),
        app_of=app_of,
        google=GoogleHosts(storage, handlers.tokens, gate, JobOfConnection(services.access, callers).token),
        end=end,
    )


def add_provider(shared: SharedParts, access: Access, handlers: Handlers) -> tuple[Method, ...]:
    """The methods of signing in with a provider, whose name people are told."""
    from trainshed.assembly.provider import make_provider_methods, provider_title

    handlers.console.provider = handlers.health.provider = provider_title(shared.settings)
    return make_provider_methods(shared, access, handlers.console.sign_ins)


def dialect_methods(services: Services, studies: Studies) -> tuple[Method, ...]:
    jobs, offer = services.jobs, services.offer
    older = AiPlatformJobService(jobs, services.storage.buckets)
    training = AiPlatformHandlers(older, AiPlatformStudyService(studies.service, older), offer)
    manifests = ManifestHandlers(
        ManifestService(jobs),
        services.image_caches,
        ExperimentService(studies.service),
        studies.views,
        offer,
    )
    return (*ai_platform_methods(training), *kubernetes_methods(manifests))


def own_hosts(shared: SharedParts) -> frozenset[str]:
    """The names by which this server may be asked."""
    settings = shared.settings
    name = shared.address.removeprefix("http://").rpartition(":")[0]
    has_inside = settings.engine != "none" or settings.kubernetes
    inside = ("127.0.0.1",) if has_inside else ()  # as containers and pods know it
    return frozenset({settings.host, name, *inside, *settings.allowed_hosts})


@dataclass(frozen=True, slots=True)
class JobOfConnection:
    """Which job's program is at the other end of a connection."""

    access: AccessService
    callers: Callers

    async def token(self, scope: Scope) -> str:
        """Of that job; empty where it is none. Asked once for a connection: the answer does not change."""
        known: dict[str, Any] = scope["state"][CONNECTION]
        if "token" not in known:
            connection = CallerConnection(
                peer=scope["client"] or _NOWHERE,
                here=scope["server"] or _NOWHERE,
                init=known.get(INIT, 0),
                job=known.get(JOB, ""),
            )
            job = await self.callers.job_of(connection)
            known["token"] = self.access.token_of(job) if job else ""
        return known["token"]


def make_handlers(
    services: Services,
    studies: Studies,
    job_hints: JobHints,
    sign_ins: SignInService,
    accounts: AccountService,
    notices: NoticeService,
) -> Handlers:
    jobs, logs, offer, clock = services.jobs, services.logs, services.offer, services.jobs.clock
    progress, access = services.metrics.board.progress, services.access
    lists = JobLists(jobs)
    own = OwnJobFields(lists, progress, services.standings)
    study_views = StudyViewHandlers(studies.service, studies.trials, studies.views)
    return Handlers(
        custom_jobs=CustomJobHandlers(jobs, logs, offer, clock, own, access.told),
        job_lists=JobListHandlers(lists, own),
        log_entries=LogHandlers(logs=logs, clock=clock),
        output=OutputOfJobs(jobs, logs, clock),
        lines=LinesOfJobs(jobs, services.log_lines),
        watch=WatchOfJobs(jobs, services.log_lines, job_hints),
        health=HealthHandlers(version=__version__),
        why=WhyHandlers(services.why, offer),
        machine_types=MachineTypeHandlers(offer.catalogue),
        metrics=MetricHandlers(jobs, services.metrics, services.costs, __version__, time.time()),
        results=ResultHandlers(jobs, partial(committed_outputs, services.storage.buckets)),
        graphs=GraphHandlers(jobs, services.graphs, progress),
        stacks=StackHandlers(services.stacks),
        shells=ShellHandlers(services.shells),
        console=ConsoleHandlers(sign_ins, __version__, lambda: job_hints.last_id),
        code=CodeHandlers(services.code),
        runtimes=RuntimeHandlers(services.runtimes),
        storage=StorageHandlers.of(services.storage),
        pipelines=PipelineHandlers(PipelineService(jobs), offer),
        tuning_jobs=TuningJobHandlers(studies.service, study_views, offer),
        study_views=study_views,
        models=ModelHandlers(services.models),
        caches=ImageCacheHandlers(services.image_caches),
        vizier=VizierHandlers(AskedStudies(studies.service), studies.trials, study_views, clock),
        tokens=GoogleTokens(access),
        accounts=AccountHandlers(accounts),
        shares=ShareHandlers(services.shares),
        images=ImageHandlers(services.images),
        nodes=NodeHandlers(services.nodes),
        queue=QueueHandlers(services.queue),
        quotas=QuotaHandlers(services.quotas),
        resources=PersistentResourceHandlers(services.resources, jobs, offer, clock),
        costs=CostHandlers(services.costs, services.budgets.spendings),
        notices=NoticeChannelHandlers(notices),
        own_notices=NoticeChannelHandlers(notices, is_own=True),
        secrets=NamedSecretHandlers(services.named_secrets),
    )
