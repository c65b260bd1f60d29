"""Metrics as JSON and as Prometheus' text."""

import math
from dataclasses import replace
from datetime import timedelta

from tests.builders import a_job, at
from trainshed.core.jobs.job import JobState
from trainshed.core.metrics import GpuUse, Point, Progress, Report, RunReading, Series, Usage
from trainshed.core.names import ReplicaName, RunKey
from trainshed.wire import prometheus
from trainshed.wire.metrics import render_progress, render_series
from trainshed.wire.prometheus import Family


def test_series_are_told_with_their_units():
    [told] = render_series([Series("workerpool0-0", "cpu", (Point(at(0), 1.0), Point(at(2.5), 0.25)))])
    begin = at(0).timestamp()
    assert told == {
        "task": "workerpool0-0",
        "name": "cpu",
        "unit": "cores",
        "points": [[begin, 1], [begin + 2.5, 0.25]],
    }


def test_progress_is_told_as_far_as_it_is_known():
    known = Progress(
        task="t", at=at(0), step=3, total=12, values={"loss": math.nan}, left=timedelta(seconds=9)
    )
    assert render_progress(known) == {
        "task": "t",
        "updateTime": "2026-05-01T12:00:00.000000Z",
        "step": 3,
        "total": 12,
        "fraction": 0.25,
        "timeLeft": "9s",
        "values": {"loss": "NaN"},
    }
    assert set(render_progress(replace(known, step=None, left=None, values={}))) == {
        "task",
        "updateTime",
        "total",
    }
    assert render_progress(None) == {}


def test_text_has_help_type_and_escaped_labels():
    family = Family("a_metric", "gauge", "What it is.")
    family.add(1.5, name='say "hi"\\\n')
    family.add(math.inf, name="")
    family.add(math.nan)
    family.add(None, name="left out")
    empty = Family("empty", "gauge", "Nothing.")
    assert prometheus.text([family, empty]) == (
        "# HELP a_metric What it is.\n"
        "# TYPE a_metric gauge\n"
        'a_metric{name="say \\"hi\\"\\\\\\n"} 1.5\n'
        'a_metric{name=""} +Inf\n'
        "a_metric NaN\n"
    )


def test_every_state_is_counted_also_with_none_in_it():
    lines = prometheus.text(prometheus.of_jobs({JobState.RUNNING: 2})).splitlines()
    assert 'trainshed_jobs{state="RUNNING"} 2' in lines
    assert 'trainshed_jobs{state="FAILED"} 0' in lines


def test_a_replica_is_told_with_counters_gauges_and_what_it_reported():
    job = replace(a_job(), display_name="digits")
    use = Usage(
        taken=1, cpu_seconds=2.5, memory=7, processes=2, gpus=(GpuUse(device="1", share=0.5, memory=9),)
    )
    reading = RunReading(
        key=RunKey(ReplicaName(job.id, 1, 0, 0), 0),
        usage=use,
        values={},
        report=Report(at=at(0), step=3, values={"loss": 0.5}),
        first=None,
    )
    text = prometheus.text(prometheus.of_replicas([(job, reading)]))
    samples = {line.split("{")[0]: line for line in text.splitlines() if not line.startswith("#")}
    assert samples["trainshed_replica_cpu_seconds_total"].endswith("} 2.5")
    assert (
        'name="digits",task="workerpool0-0",attempt="1",run="0"' in samples["trainshed_replica_memory_bytes"]
    )
    assert samples["trainshed_replica_gpu_busy_ratio"].endswith('gpu="1"} 0.5')
    assert samples["trainshed_replica_step"].endswith("} 3")
    assert samples["trainshed_replica_value"].endswith('metric="loss"} 0.5')
    assert "trainshed_replica_steps" not in samples  # it did not say
    assert "trainshed_replica_network_sent_bytes_total" not in samples
