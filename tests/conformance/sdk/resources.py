"""What people do with aiplatform.PersistentResource, one small function each."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from typing import Any

from google.cloud import aiplatform
from google.cloud.aiplatform.persistent_resource import PersistentResource
from google.cloud.aiplatform.preview import persistent_resource as preview

Reach = dict[str, Any]


def told(resource: Any) -> dict[str, Any]:
    return {
        "name": resource.resource_name,
        "display_name": resource.display_name,
        "state": resource.state.name,
        "started": bool(resource.start_time),
    }


def create(reach: Reach, id: str, pools: list[Any], beta: bool = False) -> dict[str, Any]:
    """Returns once the operation is done."""
    kind = preview.PersistentResource if beta else PersistentResource
    return told(kind.create(persistent_resource_id=id, resource_pools=pools, display_name="kept"))


def find(reach: Reach) -> list[dict[str, Any]]:
    return [told(resource) for resource in PersistentResource.list()]


def submit(reach: Reach, id: str, name: str, pools: list[Any]) -> str:
    job = aiplatform.CustomJob(
        display_name=name, worker_pool_specs=pools, persistent_resource_id=id, staging_bucket="gs://staging"
    )
    job.submit()
    return job.resource_name


def delete(reach: Reach, id: str) -> None:
    PersistentResource(id).delete(sync=True)
