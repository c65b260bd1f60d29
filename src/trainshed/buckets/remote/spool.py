"""Uploads on their way to a remote store: all their bytes lie on this disk until the store has them.

So a client that breaks off leaves nothing in the store, hashes are compared before a byte is sent, and an
upload in pieces goes on after a restart. Two files each: the bytes, and what is known of them, which is
written anew (synced, renamed) whenever more bytes count.
"""

import contextlib
import dataclasses
import json
import os
import secrets
import time
from datetime import datetime
from typing import Any

from trainshed.buckets.trouble import translated
from trainshed.core.bucket import Attributes, ObjectDraft, ObjectInfo, Precondition, Upload
from trainshed.core.errors import NotFound

KEPT = 7 * 86_400  # seconds
_NO = "The upload cannot be kept"


class Spool:
    def __init__(self, root: str) -> None:
        self._root = root

    def start(self) -> None:
        """What was being put when a server died is of no use; uploads in pieces are, for a week."""
        with translated(_NO):
            os.makedirs(self._root, 0o700, exist_ok=True)
            for entry in list(os.scandir(self._root)):
                stem, _, kind = entry.name.partition(".")
                is_known = os.path.exists(self._about(stem))
                if kind == "new" or not is_known or entry.stat().st_mtime < time.time() - KEPT:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(entry.path)

    def path(self, upload: str) -> str:
        return f"{self._root}/{upload}.bytes"

    def begin(self, bucket: str, draft: ObjectDraft) -> Upload:
        upload = Upload(id=secrets.token_hex(16), draft=draft, received=0)
        self.keep(bucket, upload)
        return upload

    def get(self, bucket: str, upload: str) -> Upload:
        fields: dict[str, Any] = {}
        try:
            # Of what we made ourselves: nothing of a name from outside becomes a path.
            with open(self._about(_checked(upload)), encoding="utf-8") as file:
                fields = json.load(file)
        except (FileNotFoundError, ValueError):
            pass
        if fields.get("bucket") != bucket:
            raise NotFound("There is no such upload; it was abandoned, or begun more than a week ago.")
        done = _object(fields["done"]) if fields["done"] else None
        return Upload(id=upload, draft=_draft(fields["draft"]), received=fields["received"], done=done)

    def keep(self, bucket: str, upload: Upload) -> None:
        fields = {
            "bucket": bucket,
            "draft": dataclasses.asdict(upload.draft),
            "received": upload.received,
            "done": dataclasses.asdict(upload.done) if upload.done else None,
        }
        with translated(_NO):
            about = self._about(upload.id)
            with open(f"{self._root}/{upload.id}.new", "w", encoding="utf-8") as file:
                json.dump(fields, file, default=datetime.isoformat)
                file.flush()
                os.fsync(file.fileno())
            os.replace(file.name, about)
            folder = os.open(self._root, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def drop(self, upload: str, *, known: bool = False) -> None:
        """The bytes; with `known`, the memory of them too."""
        for path in (self.path(upload), *((self._about(upload),) if known else ())):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _about(self, upload: str) -> str:
        return f"{self._root}/{upload}.json"


def _checked(upload: str) -> str:
    if len(upload) != 32 or set(upload) - set("0123456789abcdef"):
        raise FileNotFoundError
    return upload


def _draft(fields: dict[str, Any]) -> ObjectDraft:
    attributes, precondition = Attributes(**fields["attributes"]), Precondition(**fields["precondition"])
    removes = tuple(_object(removed) for removed in fields.get("removes", ()))
    fields |= {"attributes": attributes, "precondition": precondition, "removes": removes}
    return ObjectDraft(**fields)


def _object(fields: dict[str, Any]) -> ObjectInfo:
    fields |= {word: datetime.fromisoformat(fields[word]) for word in ("created_at", "updated_at")}
    fields["attributes"] = Attributes(**fields["attributes"])
    return ObjectInfo(**fields)
