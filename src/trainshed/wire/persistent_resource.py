"""A persistentResource: parses a request body into a PersistentResource, and renders one as the answer.

`api/persistent_resources.py` calls it. A pool has a machine and a count, or the least and the largest count:
the least is reserved, and no pool grows. A refusal lists every violation.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainshed.core.jobs.job import MAX_POOLS, Pool
from trainshed.core.ports import Operation
from trainshed.core.queue.persistent_resource import PersistentResource
from trainshed.wire import base, enums, job_schema
from trainshed.wire.base import Message, free, int64, output_only, part, parts, text, text_map, texts
from trainshed.wire.faults import Faults
from trainshed.wire.labels import check_labels
from trainshed.wire.pool import Offer, PoolParser, render_machine
from trainshed.wire.scalars import shown, time_text

STATES: Mapping[str, int] = {
    "STATE_UNSPECIFIED": 0,
    "PROVISIONING": 1,
    "RUNNING": 3,
    "STOPPING": 4,
    "ERROR": 5,
}
_ID = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_LONGEST_NAME = 128
_POOLS = "resource_pools"
_NOT_FOUND = 5  # google.rpc.Code


class AutoscalingFields(Message):
    min_replica_count: int | None = int64(None)
    max_replica_count: int | None = int64(None)


class ResourcePoolExtras(Message):
    id: str = text()
    disk_spec: job_schema.DiskSpec | None = part(job_schema.DiskSpec)
    autoscaling_spec: AutoscalingFields | None = part(AutoscalingFields)


class ResourcePoolFields(ResourcePoolExtras):
    machine_spec: job_schema.MachineSpec | None = part(job_schema.MachineSpec)
    replica_count: int | None = int64(None)
    used_replica_count: object = output_only()


class ResourceExtras(job_schema.JobExtras):
    network: str = text()
    reserved_ip_ranges: tuple[str, ...] = texts()
    psc_interface_config: job_schema.PscInterfaceConfig | None = part(job_schema.PscInterfaceConfig)
    resource_runtime_spec: Mapping[str, object] | None = free()


class PersistentResourceFields(ResourceExtras):
    name: object = output_only()
    display_name: str = text()
    resource_pools: tuple[ResourcePoolFields, ...] = parts(ResourcePoolFields)
    labels: Mapping[str, str] = text_map()
    state: object = output_only()
    error: object = output_only(is_open=True)
    create_time: object = output_only()
    start_time: object = output_only()
    update_time: object = output_only()
    resource_runtime: object = output_only(is_open=True)
    satisfies_pzs: object = output_only()
    satisfies_pzi: object = output_only()


def parse_resource(
    body: Mapping[str, object], id: str, parent: tuple[str, str], offer: Offer, now: datetime
) -> PersistentResource:
    """The requested resource; Invalid with every violation. The parent is its project and location."""
    faults = Faults("persistent_resource")
    if not _ID.fullmatch(id):
        rule = "must be 1 to 63 lowercase letters, digits and dashes, a letter first and no dash at the end"
        faults.add("persistent_resource_id", f"{rule}, not {shown(id)}.")
    fields = base.read(PersistentResourceFields, body, faults)
    if len(fields.display_name) > _LONGEST_NAME:
        faults.add("display_name", f"must have at most {_LONGEST_NAME} characters.")
    check_labels(fields.labels, "labels", faults)
    if not fields.resource_pools and not faults.under(_POOLS):
        faults.add(_POOLS, "is required: at least one pool of machines.")
    if len(fields.resource_pools) > MAX_POOLS:
        faults.add(_POOLS, f"must have at most {MAX_POOLS} pools, not {len(fields.resource_pools)}.")
    if {"raySpec", "ray_spec"} & (fields.resource_runtime_spec or {}).keys():
        faults.add("resource_runtime_spec.ray_spec", "is not run here: leave it out, and run Ray in a job.")
    parser = PoolParser(offer, faults)
    pools = [_pool(item, f"{_POOLS}[{at}]", parser, faults) for at, item in enumerate(fields.resource_pools)]
    faults.settle()
    return PersistentResource(
        id=id,
        project=parent[0],
        location=parent[1],
        display_name=fields.display_name,
        labels=dict(fields.labels),
        pools=tuple(pools),
        created_at=now,
        extras=base.write(fields, ResourceExtras),
    )


def _pool(fields: ResourcePoolFields, path: str, parser: PoolParser, faults: Faults) -> Pool:
    scaling, count = fields.autoscaling_spec, fields.replica_count
    if scaling is not None:
        least, most = scaling.min_replica_count, scaling.max_replica_count
        count = count if least is None else least
        if count is not None and most is not None and most < count:
            sentence = f"must not be less than the least, {count}, as {most} is."
            faults.add(f"{path}.autoscaling_spec.max_replica_count", sentence)
    if count is None:
        faults.add(f"{path}.replica_count", "is required: how many machines are reserved.")
    return parser.parse_machines(
        fields.machine_spec, count, path, extras=base.write(fields, ResourcePoolExtras)
    )


def render_resource(resource: PersistentResource, *, enum_ints: bool = False) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name": resource.name,
        "resourcePools": [
            {
                "id": f"pool-{number}",
                "machineSpec": render_machine(pool, enum_ints=enum_ints),
                "replicaCount": str(pool.replicas),
                **pool.extras,
            }
            for number, pool in enumerate(resource.pools)
        ],
        "state": enums.render_enum(resource.state.value, STATES, as_ints=enum_ints),
        "createTime": time_text(resource.created_at),
        "updateTime": time_text(resource.started_at or resource.created_at),
        **resource.extras,
    }
    if resource.display_name:
        answer["displayName"] = resource.display_name
    if resource.labels:
        answer["labels"] = dict(resource.labels)
    if resource.started_at is not None:
        answer["startTime"] = time_text(resource.started_at)
    return answer


def render_creation(
    operation: Operation, version: str, resource: PersistentResource | None
) -> dict[str, Any]:
    """The operation that makes a resource. It is done once the resource runs, or is gone."""
    types = f"type.googleapis.com/google.cloud.aiplatform.{version}"
    at = time_text(operation.created_at)
    about = {"createTime": at, "updateTime": at}
    answer: dict[str, Any] = {
        "name": operation.name,
        "metadata": {
            "@type": f"{types}.CreatePersistentResourceOperationMetadata",
            "genericMetadata": about,
        },
    }
    if resource is None:
        message = f"The persistent resource {operation.target} was deleted."
        return answer | {"done": True, "error": {"code": _NOT_FOUND, "message": message}}
    if resource.started_at is None:
        answer["metadata"]["progressMessage"] = "It waits until running jobs leave its machines."
        return answer
    response = {"@type": f"{types}.PersistentResource", **render_resource(resource)}
    return answer | {"done": True, "response": response}
