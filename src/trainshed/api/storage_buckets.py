"""b, b/BUCKET: create, list, get, update and delete buckets, and the few other methods that gcloud calls."""

from dataclasses import dataclass, replace
from typing import Protocol, cast, runtime_checkable

from trainshed.api.call import Call, Json, Reply
from trainshed.api.storage_answer import bucket_of, json_answer, nothing
from trainshed.core.accounts.permission import PrincipalKind
from trainshed.core.bucket import NOBODY, PAGE, BucketInfo
from trainshed.core.errors import Invalid, Violation
from trainshed.service.storage import StorageService
from trainshed.wire.storage import fault, number, render_bucket, text
from trainshed.wire.storage_bucket import check_bucket, check_line, parse_lifecycle, parse_versioning

_OF_A_JOB = frozenset(
    (
        "storage.buckets.get",
        "storage.buckets.list",
        "storage.objects.create",
        "storage.objects.delete",
        "storage.objects.get",
        "storage.objects.list",
        "storage.objects.update",
    )
)


@runtime_checkable
class _Many(Protocol):
    """A query that has every value of a name, not only the last."""

    def getlist(self, key: str) -> list[str]: ...


@dataclass(slots=True)
class StorageBucketHandlers:
    storage: StorageService

    async def create(self, call: Call) -> Reply:
        check_bucket(call.body)
        if call.flag("enableObjectRetention"):
            check_bucket({"objectRetention": True})
        project = call.query.get("project", "")
        if call.principal.kind is PrincipalKind.ACCOUNT and project in NOBODY:
            raise Invalid((Violation("project", "must be given: a bucket without one is everybody's."),))
        made = await self.storage.create(
            text(call.body, "name"),
            project,
            text(call.body, "location"),
            lambda plain: _changed(plain, call.body),
        )
        return json_answer(call, render_bucket(made, call.base_url))

    async def find(self, call: Call) -> Reply:
        project = call.principal.project or call.query.get("project", "")
        buckets = await self.storage.of_project(project, call.query.get("prefix", ""))
        if call.principal.kind is PrincipalKind.ACCOUNT:
            buckets = tuple(
                item for item in buckets if item.project in NOBODY or call.principal.sees(item.project)
            )
        size = min(number(call.query, "maxResults") or PAGE, PAGE)
        rest = [item for item in buckets if item.name > call.query.get("pageToken", "")]
        answer: Json = {"kind": "storage#buckets"}
        if rest:
            answer["items"] = [render_bucket(item, call.base_url) for item in rest[:size]]
        if len(rest) > size:
            answer["nextPageToken"] = rest[size - 1].name
        return json_answer(call, answer)

    async def get(self, call: Call) -> Reply:
        return json_answer(
            call, render_bucket(await self.storage.buckets.get(bucket_of(call)), call.base_url)
        )

    async def update(self, call: Call) -> Reply:
        """PATCH and PUT: labels, versioning and lifecycle can change."""
        check_bucket(call.body)
        new = await self.storage.change(
            bucket_of(call),
            lambda old: _changed(old, call.body),
            number(call.query, "ifMetagenerationMatch"),
        )
        return json_answer(call, render_bucket(new, call.base_url))

    async def delete(self, call: Call) -> Reply:
        await self.storage.buckets.remove(bucket_of(call), number(call.query, "ifMetagenerationMatch"))
        return nothing()

    async def layout(self, call: Call) -> Reply:
        bucket = await self.storage.buckets.get(bucket_of(call))
        return json_answer(
            call,
            {
                "kind": "storage#storageLayout",
                "bucket": bucket.name,
                "location": bucket.location,
                "locationType": "region",
                "hierarchicalNamespace": {"enabled": False},
            },
        )

    async def permissions(self, call: Call) -> Reply:
        """The requested permissions that the caller has: all, or the few of a job."""
        await self.storage.buckets.get(bucket_of(call))
        query = call.query
        asked = query.getlist("permissions") if isinstance(query, _Many) else [query.get("permissions", "")]
        if call.principal.kind is PrincipalKind.JOB:
            asked = [item for item in asked if item in _OF_A_JOB]
        return json_answer(call, {"kind": "storage#testIamPermissionsResponse", "permissions": asked})

    async def no_folders(self, call: Call) -> Reply:
        """An empty list of folders: gcloud treats any other answer as a failure."""
        await self.storage.buckets.get(bucket_of(call))
        return json_answer(call, {"kind": "storage#folders"})


def _changed(old: BucketInfo, body: Json) -> BucketInfo:
    for field in ("location", "storageClass"):
        check_line(field, str(body.get(field) or ""))
    return replace(
        old,
        labels=_labels(dict(old.labels), body),
        versioning=parse_versioning(body, old.versioning),
        lifecycle=parse_lifecycle(body, old.lifecycle),
    )


def _labels(old: dict[str, str], body: Json) -> dict[str, str]:
    given = body.get("labels")
    if "labels" in body and given is None:
        return {}
    if given is None:
        return old
    if not isinstance(given, dict) or len(cast("Json", given)) > 64:
        raise fault("labels", "labels must be an object of at most 64 texts.")
    for key, value in cast("Json", given).items():
        if value is None:
            old.pop(key, None)
        elif isinstance(value, str) and len(key) <= 63 and len(value) <= 63:
            check_line("labels", key + value)
            old[key] = value
        else:
            raise fault("labels", "A label's key and value must be texts of at most 63 characters.")
    return old
