"""At which site a job was placed, and why there: told in its history and by `why`. Pure.

`control/scheduler.py` calls it. Which sites a job may use was decided by the backend (`Readiness.sites`).
"""

from collections.abc import Sequence
from dataclasses import replace

from trainshed.core.jobs.readiness import Readiness
from trainshed.core.queue.fleet import Admission, Node


def placed_at(admission: Admission, nodes: Sequence[Node], readiness: Readiness) -> Admission:
    """The admission with its site and a sentence on why it is there, where there are several."""
    sites = readiness.sites
    if not sites or not admission.placements:
        return admission
    at = admission.placements[0].node
    site = next((node.site for node in nodes if node.name == at), sites[0])
    before = sites[: sites.index(site)] if site in sites else ()
    words = [f"It runs on {site}."]
    if before:
        words.append(f"There is no room for it on {' or '.join(before)} now.")
    elif len(sites) > 1:
        words.append(f"That comes before {', '.join(sites[1:])}.")
    if readiness.elsewhere:
        words.append(readiness.elsewhere)
    return replace(admission, site=site, why=" ".join(words))
