"""The storage API's part of the method table."""

from dataclasses import dataclass, replace
from functools import partial

from trainshed.api.call import ANY_SIZE, MOST_BODY, Handler, Method, row
from trainshed.api.storage_answer import READING, in_storage_words, not_offered, object_permission
from trainshed.api.storage_batch import MOST_BATCH, StorageBatchHandlers
from trainshed.api.storage_buckets import StorageBucketHandlers
from trainshed.api.storage_objects import StorageObjectHandlers
from trainshed.api.storage_uploads import StorageUploadHandlers
from trainshed.api.storage_xml import xml_methods
from trainshed.core.accounts.permission import Permission
from trainshed.service.storage import StorageService

_B = "/storage/v1/b"
_O = f"{_B}/{{bucket}}/o"
_ONE = f"{_O}/{{object}}"
_UPLOADS = ("/upload/storage/v1/b/{bucket}/o", "/resumable/upload/storage/v1/b/{bucket}/o")


@dataclass(frozen=True, slots=True)
class StorageHandlers:
    buckets: StorageBucketHandlers
    objects: StorageObjectHandlers
    uploads: StorageUploadHandlers
    storage: StorageService

    @classmethod
    def of(cls, storage: StorageService) -> "StorageHandlers":
        return cls(
            StorageBucketHandlers(storage),
            StorageObjectHandlers(storage),
            StorageUploadHandlers(storage),
            storage,
        )


def storage_methods(handlers: StorageHandlers) -> tuple[Method, ...]:
    small = (*_buckets(handlers.buckets), *_objects(handlers.objects))
    return (
        *small,
        _row(
            "POST",
            "/batch/storage/v1",
            StorageBatchHandlers(small).answer,
            Permission.OBJECTS_BATCH,
            streams=True,
            most_body=MOST_BATCH,
        ),
        *_uploads(handlers.uploads),
        # Not in a batch: a query there has one value for each name.
        _row(
            "GET",
            f"{_B}/{{bucket}}/iam/testPermissions",
            handlers.buckets.permissions,
            Permission.BUCKETS_READ,
        ),
        *_rest(),
        *xml_methods(handlers.storage),  # last: its paths match those above too
    )


def _row(
    verb: str,
    path: str,
    handler: Handler,
    permission: Permission,
    *,
    streams: bool = False,
    most_body: int | None = MOST_BODY,
) -> Method:
    plain = row(verb, path, handler, permission, streams=streams, most_body=most_body)
    return replace(plain, worded=partial(in_storage_words, reads=verb in READING), storage=True, plain=True)


def _stream(verb: str, path: str, handler: Handler, permission: Permission) -> Method:
    return _row(verb, path, handler, permission, streams=True, most_body=ANY_SIZE)


def _buckets(buckets: StorageBucketHandlers) -> tuple[Method, ...]:
    bucket = f"{_B}/{{bucket}}"
    return (
        _row("POST", _B, buckets.create, Permission.BUCKETS_WRITE),
        _row("GET", _B, buckets.find, Permission.BUCKETS_LIST),
        _row("GET", bucket, buckets.get, Permission.BUCKETS_READ),
        _row("HEAD", bucket, buckets.get, Permission.BUCKETS_READ),
        _row("PATCH", bucket, buckets.update, Permission.BUCKETS_WRITE),
        _row("PUT", bucket, buckets.update, Permission.BUCKETS_WRITE),
        _row("DELETE", bucket, buckets.delete, Permission.BUCKETS_WRITE),
        _row("GET", f"{bucket}/storageLayout", buckets.layout, Permission.BUCKETS_READ),
        _row("GET", f"{bucket}/managedFolders", buckets.no_folders, Permission.BUCKETS_READ),
        _row("GET", f"{bucket}/folders", buckets.no_folders, Permission.BUCKETS_READ),
    )


def _objects(objects: StorageObjectHandlers) -> tuple[Method, ...]:
    target = "b/{target}/o/{name}"
    return (
        _row("GET", _O, objects.find, Permission.OBJECTS_READ),
        _row("GET", _ONE, objects.get, Permission.OBJECTS_READ),
        _row("GET", f"/download{_ONE}", objects.media, Permission.OBJECTS_READ),
        _row("HEAD", _ONE, objects.head, Permission.OBJECTS_READ),
        _row("HEAD", f"/download{_ONE}", objects.head_media, Permission.OBJECTS_READ),
        _row("PATCH", _ONE, objects.patch, Permission.OBJECTS_WRITE),
        _row("PUT", _ONE, objects.update, Permission.OBJECTS_WRITE),
        _row("DELETE", _ONE, objects.delete, Permission.OBJECTS_WRITE),
        _row("POST", f"{_ONE}/compose", objects.compose, Permission.OBJECTS_WRITE),
        _row("POST", f"{_ONE}/copyTo/{target}", objects.copy, Permission.OBJECTS_WRITE),
        _row("POST", f"{_ONE}/rewriteTo/{target}", objects.rewrite, Permission.OBJECTS_WRITE),
        _row("POST", f"{_ONE}/moveTo/o/{{name}}", objects.move, Permission.OBJECTS_WRITE),
        _row("POST", f"{_ONE}/restore", objects.restore, Permission.OBJECTS_WRITE),
    )


def _rest() -> tuple[Method, ...]:
    """The remaining paths. Otherwise the XML API would take them for objects of a bucket "storage"."""
    return tuple(
        _stream(verb, f"{before}/storage/v1/{{rest...}}", not_offered, object_permission(verb))
        for before in ("", "/upload", "/resumable/upload", "/download")
        for verb in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
    )


def _uploads(uploads: StorageUploadHandlers) -> tuple[Method, ...]:
    return tuple(
        _stream(verb, path, handler, Permission.OBJECTS_WRITE)
        for path in _UPLOADS
        for verb, handler in (("POST", uploads.begin), ("PUT", uploads.resume), ("DELETE", uploads.abandon))
    )
