"""StoredRunFiles implements core.ports.RunFiles: output goes to the log store, reports to the metric store.

The assembly makes it, and backends call it at each launch. Where there can be no file for reports, the
replica starts without one: metrics never keep a job from running.
"""

import logging
from dataclasses import dataclass

from trainshed.core.errors import TrainshedError
from trainshed.core.log_port import LogStore
from trainshed.core.names import ReplicaName
from trainshed.core.ports import MetricStore, Sink

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredRunFiles:
    logs: LogStore
    metrics: MetricStore

    def output(self, name: ReplicaName) -> Sink:
        return self.logs.sink(name)

    def report(self, name: ReplicaName) -> str:
        try:
            return self.metrics.sink(name)
        except TrainshedError as error:
            log.warning("%s", error.message)
            return ""
