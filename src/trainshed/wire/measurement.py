"""Measurements that clients send, in Google's JSON."""

from datetime import timedelta

from trainshed.core.tuning.measurement import Measurement
from trainshed.wire.base import Message, double, duration, int64, output_only, part, parts, text
from trainshed.wire.faults import Faults


class MetricFields(Message):
    metric_id: str = text()
    value: float = double()


class MeasurementFields(Message):
    elapsed_duration: timedelta | None = duration()
    step_count: int = int64()
    metrics: tuple[MetricFields, ...] = parts(MetricFields)


class MeasurementRequest(Message):
    """The body of addTrialMeasurement."""

    trial_name: object = output_only()
    measurement: MeasurementFields | None = part(MeasurementFields)


def parse_measurement(given: MeasurementFields, path: str, faults: Faults) -> Measurement:
    elapsed = given.elapsed_duration or timedelta()
    if elapsed < timedelta():
        faults.add(f"{path}.elapsed_duration", "must not be negative.")
    if given.step_count < 0:
        faults.add(f"{path}.step_count", f"must not be negative, as {given.step_count} is.")
    if not given.metrics:
        faults.add(f"{path}.metrics", "is required: at least one metric.")
    values: dict[str, float] = {}
    for number, metric in enumerate(given.metrics):
        where = f"{path}.metrics[{number}].metric_id"
        if not metric.metric_id:
            faults.add(where, "is required.")
        elif metric.metric_id in values:
            faults.add(where, f"stands twice: {metric.metric_id[:100]!r}.")
        values[metric.metric_id] = metric.value
    return Measurement(given.step_count, elapsed.total_seconds(), values)
