"""The sentence that refuses to remove what jobs still want. `runtimes.py` and `images.py` use it."""

from collections.abc import Sequence

from trainshed.core.accounts.permission import Principal
from trainshed.core.jobs.job import Job
from trainshed.core.queue.refusal import UNNAMED


def wanted_by(what: str, jobs: Sequence[Job], principal: Principal) -> str:
    """Names the first of the jobs that the principal may see."""
    seen = next((job for job in jobs if principal.sees(job.project)), None)
    first = f"job {seen.id} '{seen.display_name}'" if seen is not None else UNNAMED
    more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
    return f"{what} is wanted by {first}{more}, not over yet: wait for the end, or cancel first."
