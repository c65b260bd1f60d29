"""Prometheus' text format, version 0.0.4: metric families with labelled samples. For `api/metrics.py`."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainshed.core.day_use import DayUse
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.metrics import RunReading

MEDIA_TYPE = "text/plain; version=0.0.4"


@dataclass(slots=True)
class Family:
    """One metric and its samples."""

    name: str
    kind: str  # gauge or counter
    about: str
    samples: list[tuple[Mapping[str, str], float]] = field(
        default_factory=list[tuple[Mapping[str, str], float]]
    )

    def add(self, value: float | None, **labels: str) -> None:
        if value is not None:
            self.samples.append((labels, value))

    def lines(self) -> Iterable[str]:
        yield f"# HELP {self.name} {self.about}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            yield f"{self.name}{{{inside}}} {_number(value)}" if inside else f"{self.name} {_number(value)}"


def text(families: Iterable[Family]) -> str:
    """The whole text. A family without samples is left out."""
    return "".join(f"{line}\n" for family in families if family.samples for line in family.lines())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def of_jobs(counts: Mapping[JobState, int]) -> list[Family]:
    jobs = Family("trainshed_jobs", "gauge", "Jobs by state.")
    for state in JobState:
        jobs.add(counts.get(state, 0), state=state.value)
    return [jobs]


def of_uses(uses: Iterable[DayUse]) -> list[Family]:
    """Time with resources. The counter begins anew with each month, as after a restart."""
    about = "This month's time of CPUs and GPUs that jobs held, by what it was spent on."
    seconds = Family("trainshed_resource_seconds_total", "counter", about)
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for use in uses:
        sums[use.spent_on.value, "cpu"] += use.micros * use.cpus
        sums[use.spent_on.value, "gpu"] += use.micros * use.gpus
    for (kind, resource), micros in sorted(sums.items()):
        if micros:
            seconds.add(micros / 1e6, **{"class": kind, "resource": resource})
    return [seconds]


def of_replicas(readings: Iterable[tuple[Job, RunReading]]) -> list[Family]:
    """The running replicas. Counters are raw: Prometheus computes rates."""
    cpu = Family("trainshed_replica_cpu_seconds_total", "counter", "CPU time of a replica's process tree.")
    memory = Family("trainshed_replica_memory_bytes", "gauge", "Memory of a replica's process tree.")
    read = Family("trainshed_replica_disk_read_bytes_total", "counter", "Bytes read from disks.")
    written = Family("trainshed_replica_disk_written_bytes_total", "counter", "Bytes written to disks.")
    received = Family("trainshed_replica_network_received_bytes_total", "counter", "Bytes received.")
    sent = Family("trainshed_replica_network_sent_bytes_total", "counter", "Bytes sent.")
    processes = Family("trainshed_replica_processes", "gauge", "Processes of a replica.")
    threads = Family("trainshed_replica_threads", "gauge", "Threads of all processes of a replica.")
    gpu = Family("trainshed_replica_gpu_busy_ratio", "gauge", "Share of time a replica's GPU was busy.")
    gpu_memory = Family("trainshed_replica_gpu_memory_bytes", "gauge", "Memory in use on a replica's GPU.")
    step = Family("trainshed_replica_step", "gauge", "The step a replica reported last.")
    total = Family("trainshed_replica_steps", "gauge", "The number of steps a replica reported it will make.")
    value = Family("trainshed_replica_value", "gauge", "A value a replica reported last.")
    for job, reading in readings:
        name = reading.key.name
        labels = {
            "project": job.project,
            "location": job.location,
            "job": job.id,
            "name": job.display_name,
            "task": name.task,
            "attempt": str(name.attempt),
            "run": str(reading.key.run),
        }
        if (use := reading.usage) is not None:
            cpu.add(use.cpu_seconds, **labels)
            memory.add(use.memory, **labels)
            read.add(use.read_bytes, **labels)
            written.add(use.written_bytes, **labels)
            received.add(use.received_bytes, **labels)
            sent.add(use.sent_bytes, **labels)
            processes.add(use.processes, **labels)
            threads.add(use.threads, **labels)
            for item in use.gpus:
                gpu.add(item.share, **labels, gpu=item.device)
                gpu_memory.add(item.memory, **labels, gpu=item.device)
        if (report := reading.report) is not None:
            step.add(report.step, **labels)
            total.add(report.total, **labels)
            for called, number in sorted(report.values.items()):
                value.add(number, **labels, metric=called)
    usage = [cpu, memory, read, written, received, sent, processes, threads, gpu, gpu_memory]
    return [*usage, step, total, value]
