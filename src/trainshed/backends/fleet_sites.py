"""Which sites of a fleet may run a job, the best first, and why no other. Nothing is placed here.

`fleet.py` asks it where a fleet has several sites: groups of nodes whose replicas reach each other, such as
this machine and a cluster. A site is asked whether it runs all images of a job, whether the job fits there
when it is empty, and whether what the job needs is prepared. What is prepared for a job is prepared at one
site: at the first that may have it. Queue and control loop know sites only by their names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.queue.fleet import Fit, Node
from trainshed.core.queue.place import fitted


class Use(StrEnum):
    """What a site is used for, where another one could run the job too."""

    FIRST = "first"  # before all others
    LAST = "last"  # where the others have no room, or cannot run it
    NEEDED = "needed"  # where no other can run such a job
    NONE = "none"  # nothing


@dataclass(frozen=True, slots=True)
class SiteView:
    """What is known of one site about one job."""

    name: str
    readiness: Readiness
    is_away: bool = False  # it was looked for and is not there


def in_order(uses: Mapping[str, Use]) -> tuple[str, ...]:
    """The sites in the order in which jobs are offered to them; unused ones are left out."""
    ranks = (Use.FIRST, Use.LAST, Use.NEEDED)
    named = [name for name, use in uses.items() if use is not Use.NONE]
    return tuple(sorted(named, key=lambda name: ranks.index(uses[name])))


def has_room(spec: JobSpec, nodes: Sequence[Node]) -> bool:
    """Whether the job fits there whole when nothing runs. Of a site without nodes nobody knows."""
    return not nodes or fitted(spec, nodes, Fit.STRICT) is not None


def chosen(views: Sequence[SiteView]) -> Readiness:
    """The readiness of a job with its sites, from what each site says, the best first.

    A site that is not there is passed over where another is ready. Where the first that may have the job is
    still preparing, the job waits for it.
    """
    able = [view for view in views if view.readiness.standing is not ReadinessState.FAILED]
    failed = [view for view in views if view.readiness.standing is ReadinessState.FAILED]
    if not able:
        words = " ".join(dict.fromkeys(view.readiness.message for view in failed))
        return replace(failed[0].readiness, message=words)
    ready, first = [view for view in able if view.readiness.is_ready], able[0]
    if not first.readiness.is_ready and not (first.is_away and ready):
        return first.readiness
    missed = [*failed, *(view for view in able if view.is_away)]
    return replace(
        ready[0].readiness,
        sites=tuple(view.name for view in ready),
        elsewhere=" ".join(f"Not on {view.name}: {view.readiness.message}" for view in missed),
    )
