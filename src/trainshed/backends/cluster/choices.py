"""ClusterChoices: what an administrator chose for jobs in a cluster. The assembly makes it of settings."""

from dataclasses import dataclass, field

from trainshed.backends.cluster.pod_template import NOTHING_MORE, PodTemplate
from trainshed.core.obstacle import PATIENCE, Patience


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoices:
    # For how long a run without progress is borne, by the reason of that.
    patience: Patience = field(default_factory=lambda: PATIENCE)
    template: PodTemplate = NOTHING_MORE
    queue: str = ""  # the LocalQueue of Kueue for jobs that name none


DEFAULT_CHOICES = ClusterChoices()
