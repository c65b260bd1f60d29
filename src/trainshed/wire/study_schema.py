"""The fields of a studySpec in a request, Google's and ours, with their types. `study_spec` has the rules.

Ours are `metricPattern`, `priorStudyNames`, `ashaStoppingSpec`, `hyperbandStoppingSpec`, and the algorithms
SOBOL, CMA_ES and TPE. The reader accepts what the beta API has beyond: `convexStopConfig` and
`transferLearningConfig`.
"""

import functools
from collections.abc import Mapping
from datetime import datetime, timedelta

from trainshed.wire import scalars
from trainshed.wire.base import (
    Message,
    duration,
    enum,
    flag,
    int32,
    int64,
    number,
    open_enum,
    part,
    parts,
    parts_of,
    text,
    texts,
    time,
    values,
)

GOALS: Mapping[str, int] = {"GOAL_TYPE_UNSPECIFIED": 0, "MAXIMIZE": 1, "MINIMIZE": 2}
SCALES: Mapping[str, int] = {
    "SCALE_TYPE_UNSPECIFIED": 0,
    "UNIT_LINEAR_SCALE": 1,
    "UNIT_LOG_SCALE": 2,
    "UNIT_REVERSE_LOG_SCALE": 3,
}
ALGORITHMS: Mapping[str, int] = {"ALGORITHM_UNSPECIFIED": 0, "GRID_SEARCH": 2, "RANDOM_SEARCH": 3}
NOISES: Mapping[str, int] = {"OBSERVATION_NOISE_UNSPECIFIED": 0, "LOW": 1, "HIGH": 2}
SELECTIONS: Mapping[str, int] = {
    "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED": 0,
    "LAST_MEASUREMENT": 1,
    "BEST_MEASUREMENT": 2,
}

_read_int64 = functools.partial(scalars.read_int, most=scalars.INT64_MOST)


class SafetyMetricConfig(Message):
    safety_threshold: float | None = number()
    desired_min_safe_trials_fraction: float | None = number()


class MetricSpec(Message):
    metric_id: str = text()
    goal: str = enum(GOALS)
    safety_config: SafetyMetricConfig | None = part(SafetyMetricConfig)


class DoubleValueSpec(Message):
    min_value: float = number(0.0)
    max_value: float = number(0.0)
    default_value: float | None = number()


class IntegerValueSpec(Message):
    min_value: int = int64()
    max_value: int = int64()
    default_value: int | None = int64(None)


class CategoricalValueSpec(Message):
    values: tuple[str, ...] = texts()
    default_value: str = text()


class DiscreteValueSpec(Message):
    values: tuple[float, ...] = values(scalars.read_number)
    default_value: float | None = number()


class DiscreteValueCondition(Message):
    values: tuple[float, ...] = values(scalars.read_number)


class IntValueCondition(Message):
    values: tuple[int, ...] = values(_read_int64)


class CategoricalValueCondition(Message):
    values: tuple[str, ...] = texts()


class StudyParameter(Message):
    parameter_id: str = text()
    double_value_spec: DoubleValueSpec | None = part(DoubleValueSpec)
    integer_value_spec: IntegerValueSpec | None = part(IntegerValueSpec)
    categorical_value_spec: CategoricalValueSpec | None = part(CategoricalValueSpec)
    discrete_value_spec: DiscreteValueSpec | None = part(DiscreteValueSpec)
    scale_type: str = enum(SCALES)
    conditional_parameter_specs: "tuple[ConditionalParameterSpec, ...]" = parts_of(
        lambda: ConditionalParameterSpec
    )


class ConditionalParameterSpec(Message):
    parent_discrete_values: DiscreteValueCondition | None = part(DiscreteValueCondition)
    parent_int_values: IntValueCondition | None = part(IntValueCondition)
    parent_categorical_values: CategoricalValueCondition | None = part(CategoricalValueCondition)
    parameter_spec: StudyParameter | None = part(StudyParameter)


class CurveStoppingSpec(Message):
    """Of the median and the decay curve."""

    use_elapsed_duration: bool = flag()


class ConvexStoppingSpec(Message):
    max_step_count: int = int64()
    min_step_count: int = int64()
    min_measurement_count: int = int64()
    learning_rate_parameter_name: str = text()
    use_elapsed_duration: bool = flag()
    update_all_stopped_trials: bool = flag()


class ConvexStopConfig(Message):
    """The beta API's older words for the convex rule."""

    max_num_steps: int = int64()
    min_num_steps: int = int64()
    autoregressive_order: int = int64()
    learning_rate_parameter_name: str = text()
    use_seconds: bool = flag()


class RungStoppingSpec(Message):
    """Ours: of ASHA and Hyperband."""

    max_step_count: int = int64()
    min_step_count: int = int64()
    reduction_factor: int = int32()
    use_elapsed_duration: bool = flag()


class StudyTimeConstraint(Message):
    max_duration: timedelta | None = duration()
    end_time: datetime | None = time()


class StudyStoppingConfig(Message):
    should_stop_asap: bool = flag()
    minimum_runtime_constraint: StudyTimeConstraint | None = part(StudyTimeConstraint)
    maximum_runtime_constraint: StudyTimeConstraint | None = part(StudyTimeConstraint)
    min_num_trials: int = int32()
    max_num_trials: int = int32()
    max_num_trials_no_progress: int = int32()
    max_duration_no_progress: timedelta | None = duration()


class TransferLearningConfig(Message):
    disable_transfer_learning: bool = flag()
    prior_study_names: tuple[str, ...] = texts()


class StudySpecExtras(Message):
    """Fields that are echoed as they were given: their values in the core have no room for the difference."""

    observation_noise: str = enum(NOISES)
    measurement_selection_type: str = enum(SELECTIONS)
    transfer_learning_config: TransferLearningConfig | None = part(TransferLearningConfig)
    prior_study_names: tuple[str, ...] = texts()


class StudySpecFields(StudySpecExtras):
    metrics: tuple[MetricSpec, ...] = parts(MetricSpec)
    parameters: tuple[StudyParameter, ...] = parts(StudyParameter)
    algorithm: str = open_enum(ALGORITHMS)
    decay_curve_stopping_spec: CurveStoppingSpec | None = part(CurveStoppingSpec)
    median_automated_stopping_spec: CurveStoppingSpec | None = part(CurveStoppingSpec)
    convex_automated_stopping_spec: ConvexStoppingSpec | None = part(ConvexStoppingSpec)
    convex_stop_config: ConvexStopConfig | None = part(ConvexStopConfig)
    asha_stopping_spec: RungStoppingSpec | None = part(RungStoppingSpec)
    hyperband_stopping_spec: RungStoppingSpec | None = part(RungStoppingSpec)
    study_stopping_config: StudyStoppingConfig | None = part(StudyStoppingConfig)
    metric_pattern: str = text()
