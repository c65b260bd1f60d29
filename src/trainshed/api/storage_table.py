"""The storage API's part of the table: verb, path and handler of each of its methods."""

from dataclasses import dataclass

from trainshed.api.call import Handler, Method
from trainshed.api.storage_answer import in_storage_words, not_offered
from trainshed.api.storage_batch import StorageBatchHandlers
from trainshed.api.storage_buckets import StorageBucketHandlers
from trainshed.api.storage_guard import guarded
from trainshed.api.storage_objects import StorageObjectHandlers
from trainshed.api.storage_uploads import StorageUploadHandlers
from trainshed.api.storage_xml import xml_methods
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
        _row("POST", "/batch/storage/v1", StorageBatchHandlers(small).answer, streams=True),
        *_uploads(handlers.uploads),
        # Not in a batch: a query there has one value for each name.
        _row("GET", f"{_B}/{{bucket}}/iam/testPermissions", handlers.buckets.permissions),
        *_rest(),
        *xml_methods(handlers.storage),  # last: its paths could be any of those above
    )


def _row(verb: str, path: str, handler: Handler, *, streams: bool = False, makes: bool = False) -> Method:
    own = guarded(handler, makes=makes, lists=(verb, path) == ("GET", _B))
    told = in_storage_words(own, reads=verb in ("GET", "HEAD"))
    return Method(verb=verb, path=path, handler=told, streams=streams, storage=True)


def _buckets(buckets: StorageBucketHandlers) -> tuple[Method, ...]:
    one = f"{_B}/{{bucket}}"
    return (
        _row("POST", _B, buckets.create, makes=True),
        _row("GET", _B, buckets.find),
        _row("GET", one, buckets.get),
        _row("HEAD", one, buckets.get),
        _row("PATCH", one, buckets.update, makes=True),
        _row("PUT", one, buckets.update, makes=True),
        _row("DELETE", one, buckets.delete, makes=True),
        _row("GET", f"{one}/storageLayout", buckets.layout),
        _row("GET", f"{one}/managedFolders", buckets.no_folders),
        _row("GET", f"{one}/folders", buckets.no_folders),
    )


def _objects(objects: StorageObjectHandlers) -> tuple[Method, ...]:
    target = "b/{target}/o/{name}"
    return (
        _row("GET", _O, objects.find),
        _row("GET", _ONE, objects.get),
        _row("GET", f"/download{_ONE}", objects.media),
        _row("HEAD", _ONE, objects.head),
        _row("HEAD", f"/download{_ONE}", objects.head_media),
        _row("PATCH", _ONE, objects.patch),
        _row("PUT", _ONE, objects.update),
        _row("DELETE", _ONE, objects.delete),
        _row("POST", f"{_ONE}/compose", objects.compose),
        _row("POST", f"{_ONE}/copyTo/{target}", objects.copy),
        _row("POST", f"{_ONE}/rewriteTo/{target}", objects.rewrite),
        _row("POST", f"{_ONE}/restore", objects.restore),
        _row("POST", f"{_ONE}/moveTo/o/{{name}}", objects.move),
    )


def _rest() -> tuple[Method, ...]:
    """What is left of the paths: else the XML API would take them for objects of a bucket "storage"."""
    return tuple(
        _row(verb, f"{before}/storage/v1/{{rest...}}", not_offered, streams=True)
        for before in ("", "/upload", "/resumable/upload", "/download")
        for verb in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
    )


def _uploads(uploads: StorageUploadHandlers) -> tuple[Method, ...]:
    return tuple(
        _row(verb, path, handler, streams=True)
        for path in _UPLOADS
        for verb, handler in (("POST", uploads.begin), ("PUT", uploads.resume), ("DELETE", uploads.abandon))
    )
