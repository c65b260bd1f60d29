"""What most parts are given: made first, so that two parts that need each other share it."""

from dataclasses import dataclass

from trainshed.clock import SteadyClock
from trainshed.control.queue import WorkQueue
from trainshed.service.job_notifier import JobNotifier
from trainshed.settings.table import Settings

CYCLE = "cycle"  # the only key of the scheduler's queue


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQueues:
    """By these queues parts hint each other. What each does is said when the assembly opens."""

    jobs: WorkQueue  # a turn of one job
    schedule: WorkQueue  # a scheduling cycle
    chores: WorkQueue  # what is cleaned up now and then

    def hint_scheduler(self) -> None:
        self.schedule.hint(CYCLE)

    def hint_lifecycle(self) -> None:
        self.chores.hint("lifecycle")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedParts:
    settings: Settings
    address: str  # of this server, as jobs are told
    clock: SteadyClock
    notifier: JobNotifier
    queues: WorkQueues


def make_shared(settings: Settings, address: str) -> SharedParts:
    clock = SteadyClock(settings.home / "clock.json")
    return SharedParts(
        settings=settings,
        address=address,
        clock=clock,
        notifier=JobNotifier(),
        queues=WorkQueues(jobs=WorkQueue(clock), schedule=WorkQueue(clock), chores=WorkQueue(clock)),
    )
