"""pause: how long a job waits that was preempted and had stored nothing of its run. Pure.

`core/jobs/closing.py` calls it when such a job goes back to the queue. A long job without checkpoints would
be started again at once where others leave room, be stopped again, and never get to its end: it takes
machines and nothing comes of it. So it pauses as long as it ran in vain, and each time in a row twice as
long, at most a day. Where it has a right to its share it starts at once, since nobody may take that from it.

Many programs store a checkpoint only when they are asked to stop. `control/pauses.py` looks for it later.
"""

from datetime import datetime, timedelta

from trainshed.core.jobs.job import Requeue

SHORT = timedelta(minutes=5)  # to run for so long in vain is no reason to pause
LONGEST = timedelta(days=1)
CLOSE = timedelta(minutes=1)  # a checkpoint so soon after the start is of the run before


def requeue_of(
    before: Requeue | None,
    message: str,
    ran: timedelta,
    lost: timedelta | None,
    stopped_at: datetime,
    now: datetime,
    max_wait: timedelta | None = None,
) -> Requeue:
    """How a job goes back to the queue that has lost so much of its run. `before` is the last time.

    A job that may wait for a limited time only pauses for half of it at most.
    """
    in_vain = 0 if before is None else before.in_vain
    if lost is None or lost + CLOSE < ran:
        return Requeue(at=now, message=message)
    if ran < SHORT:
        return Requeue(at=now, message=message, in_vain=in_vain)
    pause = min(LONGEST, ran * 2 ** min(in_vain, 20))
    if max_wait is not None:
        pause = min(pause, max_wait / 2)
    return Requeue(
        at=now, message=message, in_vain=in_vain + 1, pauses_until=now + pause, began=stopped_at - ran
    )
