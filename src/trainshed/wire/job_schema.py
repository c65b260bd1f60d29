"""The fields of a customJob in a request, Google's and ours, with their types. `custom_job` has the rules.

Fields of Google that Trainshed does not act on are read too: a wrong type is refused, and answers return the
value. Fields that only the server sets are accepted and ignored, so that the output of `describe` can be sent
again.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from trainshed.core.jobs.job import MAX_POOLS
from trainshed.wire import enums, scalars
from trainshed.wire.base import (
    Message,
    duration,
    enum,
    flag,
    int32,
    int64,
    open_enum,
    output_only,
    part,
    parts,
    text,
    text_map,
    texts,
    values,
)

_CODES = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")


def read_exit_codes(value: object) -> tuple[int, int]:
    """One exit code or a range of them, both ends included: 42, "42" or "129-255"."""
    match = _CODES.fullmatch(str(value)) if isinstance(value, str | int) else None
    if match:
        low = int(match[1])
        high = int(match[2] or low)
        if 1 <= low <= high <= 255:
            return low, high
    raise ValueError(
        f'must be an exit code or a range from 1 to 255, such as "129-255", not {scalars.shown(value)}.'
    )


def read_pool(value: object) -> int:
    """The number of a pool."""
    number = scalars.read_int(value, MAX_POOLS - 1)
    if number < 0:
        raise ValueError(f"must be the number of a pool, from 0, not {number}.")
    return number


class EnvVar(Message):
    name: str = text()
    value: str = text()
    secret: bool = flag()  # ours: its value is not shown


class ContainerSpec(Message):
    image_uri: str = text()
    command: tuple[str, ...] = texts()
    args: tuple[str, ...] = texts()
    env: tuple[EnvVar, ...] = parts(EnvVar)


class PythonPackageSpec(Message):
    executor_image_uri: str = text()
    package_uris: tuple[str, ...] = texts()
    python_module: str = text()
    args: tuple[str, ...] = texts()
    env: tuple[EnvVar, ...] = parts(EnvVar)


class ReservationAffinity(Message):
    reservation_affinity_type: str = enum(enums.RESERVATIONS)
    key: str = text()
    values: tuple[str, ...] = texts()


class MachineExtras(Message):
    """Fields that are only returned in answers."""

    tpu_topology: str = text()
    gpu_partition_size: str = text()
    multihost_gpu_node_count: int = int32()
    min_gpu_driver_version: str = text()
    reservation_affinity: ReservationAffinity | None = part(ReservationAffinity)


class MachineSpec(MachineExtras):
    machine_type: str = text()
    accelerator_type: str = open_enum(enums.ACCELERATORS)
    accelerator_count: int = int32()


class DiskSpec(Message):
    boot_disk_type: str = text()
    boot_disk_size_gb: int = int32()


class NfsMountSpec(Message):
    server: str = text()
    path: str = text()
    mount_point: str = text()
    read_only: bool = flag()


class LustreMount(Message):
    instance_ip: str = text()
    volume_handle: str = text()
    filesystem: str = text()
    mount_point: str = text()


class PoolExtras(Message):
    disk_spec: DiskSpec | None = part(DiskSpec)
    nfs_mounts: tuple[NfsMountSpec, ...] = parts(NfsMountSpec)
    lustre_mounts: tuple[LustreMount, ...] = parts(LustreMount)
    scratch_dirs: tuple[str, ...] = texts()


class ReductionServerSpec(Message):
    replica_count: int | None = int64(None)
    machine_spec: MachineSpec | None = part(MachineSpec)
    container_spec: ContainerSpec | None = part(ContainerSpec)


class WorkerPoolSpec(PoolExtras):
    replica_count: int | None = int64(None)
    machine_spec: MachineSpec | None = part(MachineSpec)
    container_spec: ContainerSpec | None = part(ContainerSpec)
    python_package_spec: PythonPackageSpec | None = part(PythonPackageSpec)
    reduction_server_spec: ReductionServerSpec | None = part(ReductionServerSpec)


class RestartRuleSpec(Message):
    retry_exit_codes: tuple[tuple[int, int], ...] = values(read_exit_codes)
    max_replica_restarts: int | None = int32(None)
    max_job_retries: int | None = int32(None)
    backoff: timedelta | None = duration()
    max_backoff: timedelta | None = duration()


class HangWatchSpec(Message):
    after: timedelta | None = duration()
    exit_after: timedelta | None = duration()
    policy: str = enum(enums.HANG_POLICIES)


class SchedulingSpec(Message):
    timeout: timedelta | None = duration()
    max_wait_duration: timedelta | None = duration()
    restart_job_on_worker_restart: bool = flag()
    disable_retries: bool = flag()
    strategy: str = enum(enums.STRATEGIES)
    priority: int = int32()
    grace_period: timedelta | None = duration()
    drain_duration: timedelta | None = duration()
    success_pools: tuple[int, ...] = values(read_pool, int)
    hold_on_failure: timedelta | None = duration()
    restart_rule: RestartRuleSpec | None = part(RestartRuleSpec)
    hang_watch: HangWatchSpec | None = part(HangWatchSpec)


class GcsDestination(Message):
    output_uri_prefix: str = text()


class DnsPeeringConfig(Message):
    domain: str = text()
    target_project: str = text()
    target_network: str = text()


class PscInterfaceConfig(Message):
    network_attachment: str = text()
    dns_peering_configs: tuple[DnsPeeringConfig, ...] = parts(DnsPeeringConfig)


class SpecExtras(Message):
    service_account: str = text()
    network: str = text()
    reserved_ip_ranges: tuple[str, ...] = texts()
    psc_interface_config: PscInterfaceConfig | None = part(PscInterfaceConfig)
    protected_artifact_location_id: str = text()
    tensorboard: str = text()
    enable_dashboard_access: bool = flag()
    experiment: str = text()
    experiment_run: str = text()
    models: tuple[str, ...] = texts()


class CustomJobSpec(SpecExtras):
    worker_pool_specs: tuple[WorkerPoolSpec, ...] = parts(WorkerPoolSpec)
    scheduling: SchedulingSpec | None = part(SchedulingSpec)
    base_output_directory: GcsDestination | None = part(GcsDestination)
    enable_web_access: bool = flag()
    code: str = text()
    working_directory: str = text()
    requirements: tuple[str, ...] = texts()
    persistent_resource_id: str = text()


class EncryptionSpec(Message):
    kms_key_name: str = text()


class JobExtras(Message):
    encryption_spec: EncryptionSpec | None = part(EncryptionSpec)


class CustomJob(JobExtras):
    display_name: str = text()
    job_spec: CustomJobSpec | None = part(CustomJobSpec)
    labels: Mapping[str, str] = text_map()
    name: object = output_only()
    state: object = output_only()
    create_time: object = output_only()
    start_time: object = output_only()
    end_time: object = output_only()
    update_time: object = output_only()
    error: object = output_only(is_open=True)
    web_access_uris: object = output_only(is_open=True)
    satisfies_pzs: object = output_only()
    satisfies_pzi: object = output_only()
