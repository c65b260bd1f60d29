"""What moves jobs by itself: the scheduler, the turns of jobs, their outputs, and the chores."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from trainshed.assembly.access import Access
from trainshed.assembly.costs import make_costs
from trainshed.assembly.images import ImageParts
from trainshed.assembly.measuring import Measuring
from trainshed.assembly.shared import SharedParts
from trainshed.assembly.shares import Shares, make_shares
from trainshed.assembly.storage import Storage
from trainshed.backends.fleet import Fleet
from trainshed.control.budgets import Budgets
from trainshed.control.janitor import Janitor
from trainshed.control.jobs import JobLoop
from trainshed.control.lifecycle import LifecycleSweeper
from trainshed.control.outputs import Outputs
from trainshed.control.queue import Work, WorkQueue
from trainshed.control.resume import committed_outputs
from trainshed.control.scheduler import Scheduler
from trainshed.control.sweeper import Sweeper
from trainshed.core.bucket_port import Buckets
from trainshed.core.jobs.job import Job
from trainshed.core.queue.fleet import Fit
from trainshed.data.verdict_rules import load_rules
from trainshed.service.costs import CostService


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    scheduler: Scheduler
    job_loop: JobLoop
    outputs: Outputs
    costs: CostService
    budgets: Budgets
    shares: Shares
    chores: Mapping[str, Work]  # by their keys in the queue of chores


async def _checkpointed_at(buckets: Buckets, job: Job) -> datetime | None:
    """When the newest checkpoint of a job was stored; None where it has none."""
    committed = await committed_outputs(buckets, job.project, job.spec.output)
    return max((unit.stored_at for unit in committed.checkpoints), default=None)


def make_budgets(shared: SharedParts, storage: Storage, costs: CostService, shares: Shares) -> Budgets:
    return Budgets(
        shared.clock,
        costs.prices,
        costs.spent,
        shared.queues.hint_scheduler,
        storage.store.notices.queue,
        shares.reserved,
    )


def make_control(
    shared: SharedParts,
    storage: Storage,
    access: Access,
    fleet: Fleet,
    images: ImageParts,
    measuring: Measuring,
) -> Control:
    clock, queues = shared.clock, shared.queues
    costs = make_costs(shared, storage)
    shares = make_shares(shared, storage, access)
    budgets = make_budgets(shared, storage, costs, shares)
    scheduler = Scheduler(
        store=storage.store,
        backend=fleet,
        clock=clock,
        fit=Fit(shared.settings.fit),
        ring=shared.notifier.ring,
        hint=queues.hint_scheduler,
        hint_job=queues.jobs.hint,
        shares=shares.reserved,
        checkpointed=partial(_checkpointed_at, storage.buckets),
        cached=images.keeper.matched,
        budget=budgets.waiting,
        has_accounts=lambda: bool(access.accounts.directory.accounts),
    )
    outputs = make_outputs(shared, storage, fleet)
    job_loop = JobLoop(
        store=storage.store,
        backend=fleet,
        logs=storage.logs,
        clock=clock,
        ring=shared.notifier.ring,
        hint_scheduler=scheduler.look_at,
        rules=load_rules,
        collector=measuring.collector,
        freeing=scheduler.freeing,
        equip=access.service.equip,
        outputs=outputs,
        secrets=storage.secrets,
        named_secrets=storage.named_secrets,
    )
    chores = {
        "past use": shares.past_use.look,
        "look": Janitor(storage.store, storage.logs, queues.jobs.hint, storage.secrets).look,
        "code": Sweeper(storage.store, storage.code, clock).look,
        "lifecycle": LifecycleSweeper(storage.buckets, clock).look,
        "budgets": budgets.look,
    }
    return Control(
        scheduler=scheduler,
        job_loop=job_loop,
        outputs=outputs,
        costs=costs,
        budgets=budgets,
        shares=shares,
        chores=chores,
    )


def make_outputs(shared: SharedParts, storage: Storage, fleet: Fleet) -> Outputs:
    return Outputs(
        store=storage.store,
        backend=fleet,
        views=fleet.views,
        buckets=storage.buckets,
        clock=shared.clock,
        queue=WorkQueue(shared.clock),
        hint_job=shared.queues.jobs.hint,
    )
