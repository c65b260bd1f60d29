"""What people may do, as services: one for each kind of thing. `api` puts them behind HTTP."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainshed.assembly.access import Access
from trainshed.assembly.backends import Backends
from trainshed.assembly.control import Control
from trainshed.assembly.images import ImageParts
from trainshed.assembly.measuring import Measuring
from trainshed.assembly.shared import CYCLE, SharedParts
from trainshed.assembly.storage import Storage
from trainshed.control.budgets import Budgets
from trainshed.control.scheduler import Scheduler
from trainshed.core.queue.guarantee import Standing
from trainshed.data.catalogue import load_catalogue
from trainshed.dialects.ai_platform.origin import key_of
from trainshed.service.access import AccessService
from trainshed.service.code import CodeService
from trainshed.service.costs import CostService
from trainshed.service.graphs import GraphService
from trainshed.service.image_caches import ImageCacheService
from trainshed.service.image_uploads import ImageUploads
from trainshed.service.images import ImageService
from trainshed.service.jobs import JobService
from trainshed.service.log_lines import LogLineService
from trainshed.service.logs import LogService
from trainshed.service.metrics import MetricService
from trainshed.service.named_secrets import NamedSecretService
from trainshed.service.nodes import NodeService
from trainshed.service.persistent_resources import PersistentResourceService
from trainshed.service.pipelines import ModelService
from trainshed.service.queue import QueueService
from trainshed.service.quotas import QuotaService
from trainshed.service.results_check import ResultsCheck
from trainshed.service.runtimes import RuntimeService
from trainshed.service.share_limits import ShareLimits
from trainshed.service.shares import ShareService
from trainshed.service.shells import ShellService
from trainshed.service.shortage import Shortage
from trainshed.service.stacks import StackService
from trainshed.service.storage import StorageService
from trainshed.service.trial_logs import TrialLogs
from trainshed.service.why import WhyService
from trainshed.wire.pool import Offer

SOON = 0.02  # seconds until a job that comes to a queue is looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    offer: Offer  # what jobs can be given here
    jobs: JobService
    named_secrets: NamedSecretService
    why: WhyService
    logs: LogService
    log_lines: LogLineService
    metrics: MetricService
    graphs: GraphService
    stacks: StackService
    shells: ShellService
    code: CodeService
    runtimes: RuntimeService
    storage: StorageService
    models: ModelService
    image_caches: ImageCacheService
    images: ImageService
    nodes: NodeService
    queue: QueueService
    quotas: QuotaService
    resources: PersistentResourceService
    costs: CostService
    budgets: Budgets
    shares: ShareService
    access: AccessService
    standings: Callable[[], Mapping[str, Standing]]  # of running jobs, where shares are set


def make_services(
    shared: SharedParts,
    storage: Storage,
    access: Access,
    backends: Backends,
    images: ImageParts,
    measuring: Measuring,
    control: Control,
) -> Services:
    store, clock, fleet, scheduler = storage.store, shared.clock, backends.fleet, control.scheduler
    offer = Offer(
        catalogue=load_catalogue(), refuse_image=fleet.refuse_image, refuse_together=fleet.refuse_together
    )
    named_secrets = NamedSecretService(storage.named_secrets, clock)
    jobs = make_jobs(shared, storage, backends, control, named_secrets)
    return Services(
        offer=offer,
        jobs=jobs,
        named_secrets=named_secrets,
        why=make_why(storage, backends, control, offer, jobs),
        logs=make_logs(shared, storage),
        log_lines=LogLineService(storage.logs),
        metrics=measuring.service,
        graphs=GraphService(store, storage.metrics, clock, measuring.collector.settle),
        stacks=measuring.stacks,
        shells=ShellService(store, fleet.shells, clock, access.people),
        code=CodeService(storage.code),
        runtimes=RuntimeService(store, backends.runtimes, backends.processes.warmth),
        storage=StorageService(storage.buckets, clock, shared.queues.hint_lifecycle),
        models=ModelService(store, clock),
        image_caches=images.service,
        images=ImageService(
            store, fleet.images, ImageUploads(fleet.images, shared.settings.home), images.caches
        ),
        nodes=NodeService(store, fleet, measuring.service.board.of),
        queue=make_queue(shared, storage, backends, scheduler),
        quotas=QuotaService(store, fleet, scheduler.shares),
        resources=PersistentResourceService(
            store=store,
            jobs=store,
            studies=store.studies,
            shares=control.shares.reserved,
            backend=fleet,
            clock=clock,
            hint=shared.queues.hint_scheduler,
        ),
        costs=control.costs,
        budgets=control.budgets,
        shares=ShareService(
            rows=scheduler.share_rows,
            stored=control.shares.stored,
            file=shared.settings.shares,
            hint_scheduler=shared.queues.hint_scheduler,
            check=control.shares.reserved.check_shares,
        ),
        access=access.service,
        standings=scheduler.standings,
    )


def make_why(
    storage: Storage, backends: Backends, control: Control, offer: Offer, jobs: JobService
) -> WhyService:
    scheduler = control.scheduler
    return WhyService(
        storage.store,
        backends.fleet,
        jobs.clock,
        scheduler.fit,
        offer.catalogue,
        landing=jobs.landing,
        named_secrets=jobs.named_secrets,
        unready=scheduler.unready,
        sites=scheduler.sites,
        budget=scheduler.budget,
        shares=scheduler.tree,
    )


def make_queue(
    shared: SharedParts, storage: Storage, backends: Backends, scheduler: Scheduler
) -> QueueService:
    return QueueService(
        storage.store,
        backends.fleet,
        shared.clock,
        scheduler.fit,
        reason=scheduler.reason,
        unready=scheduler.unready,
        sites=scheduler.sites,
        has_accounts=scheduler.has_accounts,
        shares=scheduler.tree,
        in_turn=scheduler.in_turn,
        set_aside=lambda: (*scheduler.backlog.unseen.values(), *scheduler.backlog.ready.aside()),
    )


def make_logs(shared: SharedParts, storage: Storage) -> LogService:
    store, keys = storage.store, (key_of,)
    trials = TrialLogs(store.studies, store, keys)
    return LogService(store, storage.logs, shared.notifier, name_keys=keys, trials=trials)


def make_jobs(
    shared: SharedParts,
    storage: Storage,
    backends: Backends,
    control: Control,
    named_secrets: NamedSecretService,
) -> JobService:
    queues, scheduler = shared.queues, control.scheduler

    def hint_submitted() -> None:
        if scheduler.is_full:
            queues.schedule.within(CYCLE, SOON)
        else:
            queues.hint_scheduler()

    return JobService(
        store=storage.store,
        clock=shared.clock,
        notifier=shared.notifier,
        hint_job=queues.jobs.hint,
        hint_scheduler=hint_submitted,
        waiting_reason=scheduler.reason,
        code=CodeService(storage.code),
        default_output=shared.settings.default_output,
        landing=ResultsCheck(storage.buckets),
        shortage=Shortage(backends.fleet, scheduler.fit),
        limits=ShareLimits(scheduler.shares, backends.fleet, scheduler.fit),
        reserved=control.shares.reserved,
        secrets=storage.secrets,
        named_secrets=named_secrets,
    )
