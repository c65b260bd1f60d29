"""The fields of a job of AI Platform Training (`ml` v1), with their types. `job.py` has the rules.

Fields that only the server sets are accepted and ignored, so that the output of `describe` can be sent again.
Fields without effect (disks, networks, keys) are read too: a wrong type is refused, and answers return them.
"""

from collections.abc import Mapping
from datetime import timedelta

from trainshed.wire import enums, scalars
from trainshed.wire.base import (
    Message,
    duration,
    enum,
    flag,
    free,
    int32,
    int64,
    number,
    open_enum,
    output_only,
    part,
    parts,
    text,
    text_map,
    texts,
    values,
)

GOALS: Mapping[str, int] = {"GOAL_TYPE_UNSPECIFIED": 0, "MAXIMIZE": 1, "MINIMIZE": 2}
ALGORITHMS: Mapping[str, int] = {"ALGORITHM_UNSPECIFIED": 0, "GRID_SEARCH": 1, "RANDOM_SEARCH": 2}
PARAMETERS: Mapping[str, int] = {
    "PARAMETER_TYPE_UNSPECIFIED": 0,
    "DOUBLE": 1,
    "INTEGER": 2,
    "CATEGORICAL": 3,
    "DISCRETE": 4,
}
SCALES: Mapping[str, int] = {
    "NONE": 0,
    "UNIT_LINEAR_SCALE": 1,
    "UNIT_LOG_SCALE": 2,
    "UNIT_REVERSE_LOG_SCALE": 3,
}


class AcceleratorConfig(Message):
    count: int = int64()
    type: str = open_enum(enums.ACCELERATORS)


class DiskConfig(Message):
    boot_disk_type: str = text()
    boot_disk_size_gb: int = int32()


class ReplicaConfig(Message):
    image_uri: str = text()
    container_command: tuple[str, ...] = texts()
    container_args: tuple[str, ...] = texts()
    accelerator_config: AcceleratorConfig | None = part(AcceleratorConfig)
    disk_config: DiskConfig | None = part(DiskConfig)
    tpu_tf_version: str = text()


class ParameterSpec(Message):
    parameter_name: str = text()
    type: str = enum(PARAMETERS)
    min_value: float | None = number()
    max_value: float | None = number()
    categorical_values: tuple[str, ...] = texts()
    discrete_values: tuple[float, ...] = values(scalars.read_number)
    scale_type: str = enum(SCALES)


class HyperparameterSpec(Message):
    goal: str = enum(GOALS)
    params: tuple[ParameterSpec, ...] = parts(ParameterSpec)
    max_trials: int = int32()
    max_parallel_trials: int = int32()
    max_failed_trials: int = int32()
    hyperparameter_metric_tag: str = text()
    resume_previous_job_id: str = text()
    enable_trial_early_stopping: bool = flag()
    algorithm: str = enum(ALGORITHMS)


class TrainingScheduling(Message):
    max_running_time: timedelta | None = duration()
    max_wait_time: timedelta | None = duration()
    priority: int = int32()


class EncryptionConfig(Message):
    kms_key_name: str = text()


class TrainingInput(Message):
    scale_tier: str = text()  # the catalogue has the valid names
    master_type: str = text()
    master_config: ReplicaConfig | None = part(ReplicaConfig)
    worker_type: str = text()
    worker_config: ReplicaConfig | None = part(ReplicaConfig)
    worker_count: int = int64()
    parameter_server_type: str = text()
    parameter_server_config: ReplicaConfig | None = part(ReplicaConfig)
    parameter_server_count: int = int64()
    evaluator_type: str = text()
    evaluator_config: ReplicaConfig | None = part(ReplicaConfig)
    evaluator_count: int = int64()
    package_uris: tuple[str, ...] = texts()
    python_module: str = text()
    args: tuple[str, ...] = texts()
    hyperparameters: HyperparameterSpec | None = part(HyperparameterSpec)
    region: str = text()
    job_dir: str = text()
    runtime_version: str = text()
    python_version: str = text()
    use_chief_in_tf_config: bool = flag()
    enable_web_access: bool = flag()
    scheduling: TrainingScheduling | None = part(TrainingScheduling)
    service_account: str = text()
    network: str = text()
    encryption_config: EncryptionConfig | None = part(EncryptionConfig)


class TrainingJobBody(Message):
    job_id: str = text()
    training_input: TrainingInput | None = part(TrainingInput)
    prediction_input: Mapping[str, object] | None = free()
    labels: Mapping[str, str] = text_map()
    etag: str = text()
    create_time: object = output_only()
    start_time: object = output_only()
    end_time: object = output_only()
    state: object = output_only()
    error_message: object = output_only()
    training_output: object = output_only(is_open=True)
    prediction_output: object = output_only(is_open=True)
    job_position: object = output_only()
