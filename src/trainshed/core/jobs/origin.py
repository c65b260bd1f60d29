"""The request that a job came from, where it was not a customJob, and that grammar's own words. Pure.

The reader of the request makes the Origin. The store keeps only `kind` and `record`; the same reader makes
the rest again when the store reads the job. The core uses the words and knows none of the grammars.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainshed.core.jobs.pool_words import PoolWords


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    kind: str  # jobs can be listed by it
    record: Mapping[str, Any]  # what is kept of the request; only its reader understands it
    name: str = ""  # by which its owner knows the job; empty: its id
    output_field: str = ""  # the field that names the output; empty: that of a customJob
    request: Mapping[str, Any] | None = None  # what TF_CONFIG says of the job; None: its worker pools
    chief: str = "chief"  # TF_CONFIG's name for the first replica
    lists_evaluators: bool = True  # whether TF_CONFIG has evaluators in the cluster
    tells_alone: bool = True  # whether the replica of a job that has one finds TF_CONFIG
    index_variable: str = ""  # the variable that tells a replica its index; empty: none
    pools: tuple[PoolWords, ...] = ()  # for each pool; empty: the texts of pools are meant as they are
    trial: str = ""  # the number of the trial that the job runs; empty: it runs none

    @property
    def is_told(self) -> bool:
        """Whether replicas are told something in its words: a copy of the job needs it too."""
        return bool(self.pools or self.index_variable)
