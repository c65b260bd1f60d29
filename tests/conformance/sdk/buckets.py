"""What people do with google.cloud.storage, one small function each: found by STORAGE_EMULATOR_HOST alone."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import base64
import hashlib
import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Reach = dict[str, Any]


@contextmanager
def pointed_at(reach: Reach) -> Iterator[str]:
    os.environ["STORAGE_EMULATOR_HOST"] = f"{reach['url']}/t/{reach['token']}"
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"  # gRPC at Google's own address
    try:
        yield os.environ["STORAGE_EMULATOR_HOST"]
    finally:
        del os.environ["STORAGE_EMULATOR_HOST"]


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def bucket_of(reach: Reach, name: str) -> Any:
    from google.cloud import storage

    client = storage.Client()
    return client.bucket(name) if client.bucket(name).exists() else client.create_bucket(name)


def transfer(reach: Reach, bucket: str, size: int, chunk: int | None) -> list[Any]:
    """Up from a file, in chunks or not, and down again, whole and in part."""
    content = noise(size)
    with pointed_at(reach), tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            file.write(content)
        blob = bucket_of(reach, bucket).blob(f"up/{size}", chunk_size=chunk)
        blob.upload_from_filename(path, content_type="a/b", checksum="crc32c")
        md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
        down = blob.bucket.blob(blob.name, chunk_size=chunk)
        piece = blob.download_as_bytes(start=size // 3, end=size // 2) if size else b""
        return [
            blob.size == size,
            blob.md5_hash == md5,
            blob.content_type,
            down.download_as_bytes(checksum="md5") == content,
            piece == content[size // 3 : size // 2 + 1] if size else True,
        ]


def file_like(reach: Reach, bucket: str) -> int:
    with pointed_at(reach):
        blob = bucket_of(reach, bucket).blob("lines.txt")
        with blob.open("w") as out:
            for number in range(100_000):
                out.write(f"line {number}\n")
        with blob.open("r") as back:
            return len(back.readlines())


def names(reach: Reach, bucket: str, given: list[str]) -> list[str]:
    """Objects of these names, each holding its own; those that come back right, as listed."""
    with pointed_at(reach):
        place = bucket_of(reach, bucket)
        for name in given:
            place.blob(name).upload_from_string(name)
        return [blob.name for blob in place.list_blobs() if blob.download_as_text() == blob.name]


def listed(reach: Reach, bucket: str, given: list[str], **query: Any) -> list[list[str]]:
    with pointed_at(reach):
        place = bucket_of(reach, bucket)
        for name in given:
            place.blob(name).upload_from_string(b"x")
        found = place.list_blobs(**query)
        return [[blob.name for blob in found], sorted(found.prefixes)]


def write_if(reach: Reach, bucket: str, name: str, generation: int | None) -> int:
    with pointed_at(reach):
        blob = bucket_of(reach, bucket).blob(name)
        blob.upload_from_string(b"mine", if_generation_match=generation)
        return int(blob.generation)


def composed(reach: Reach, bucket: str) -> list[Any]:
    with pointed_at(reach):
        place = bucket_of(reach, bucket)
        parts = [place.blob(f"part-{n}") for n in range(3)]
        for number, part in enumerate(parts):
            part.upload_from_string(f"{number}")
        whole = place.blob("whole")
        whole.compose(parts)
        return [whole.download_as_text(), whole.component_count]


def copied(reach: Reach, bucket: str) -> list[Any]:
    with pointed_at(reach):
        place, other = bucket_of(reach, bucket), bucket_of(reach, f"{bucket}-2")
        blob = place.blob("from here")
        blob.metadata = {"k": "v"}
        blob.upload_from_string(b"bytes", content_type="text/plain")
        made = other.blob("to there")
        _, done, total = made.rewrite(blob)
        made.update_storage_class("NEARLINE")
        made.reload()
        moved = place.rename_blob(blob, "elsewhere")
        return [
            [done, total, made.storage_class, made.metadata, made.content_type, made.download_as_text()],
            [moved.download_as_text(), place.blob("from here").exists()],
        ]


def described(reach: Reach, bucket: str) -> list[Any]:
    with pointed_at(reach):
        blob = bucket_of(reach, bucket).blob("described")
        blob.upload_from_string(b"x")
        blob.metadata, blob.cache_control = {"a": "1", "b": "2"}, "no-store"
        blob.patch()
        blob.metadata = {"a": "1", "b": None}
        blob.patch()
        again = blob.bucket.get_blob("described")
        return [
            again.metadata,
            again.cache_control,
            again.metageneration,
            again.generation == blob.generation,
        ]


def batched(reach: Reach, bucket: str) -> list[str]:
    with pointed_at(reach):
        place = bucket_of(reach, bucket)
        for number in range(4):
            place.blob(f"b/{number}").upload_from_string(b"x")
        with place.client.batch():
            for number in range(3):
                place.blob(f"b/{number}").delete()
        return [blob.name for blob in place.list_blobs()]


def through_obstore(reach: Reach, bucket: str) -> list[Any]:
    try:
        import obstore
        from obstore.exceptions import AlreadyExistsError
        from obstore.store import GCSStore
    except ImportError:
        return ["absent"]
    with pointed_at(reach) as address:
        bucket_of(reach, bucket)
    key = {
        "gcs_base_url": address,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    store = GCSStore(
        bucket, config={"service_account_key": json.dumps(key)}, client_options={"allow_http": True}
    )
    content = noise(30 << 20)  # in parts, several at a time
    obstore.put(store, "big", content)
    first = obstore.put(store, "a/b.txt", b"hello", mode="create")
    try:
        obstore.put(store, "a/b.txt", b"again", mode="create")
        locked = False
    except AlreadyExistsError:
        locked = True
    obstore.copy(store, "a/b.txt", "c/d.txt")
    obstore.rename(store, "c/d.txt", "e f:ü")
    seen = sorted(one["path"] for one in obstore.list(store).collect())
    piece = bytes(obstore.get_range(store, "big", start=5_000_000, end=5_000_100))
    head = obstore.head(store, "a/b.txt")
    told = [
        seen,
        bytes(obstore.get(store, "big").bytes()) == content,
        piece == content[5_000_000:5_000_100],
        locked,
        (head["size"], head["e_tag"] == first["e_tag"]),
        obstore.list_with_delimiter(store)["common_prefixes"],
    ]
    obstore.delete(store, seen)
    return [*told, obstore.list(store).collect()]


def in_parallel(reach: Reach, bucket: str, size: int) -> bool:
    """transfer_manager: parts of one file at the same time, up by the XML API and down by ranges."""
    from google.cloud.storage import transfer_manager

    content = noise(size)
    with pointed_at(reach), tempfile.TemporaryDirectory() as folder:
        there, back = os.path.join(folder, "there"), os.path.join(folder, "back")
        with open(there, "wb") as file:
            file.write(content)
        blob = bucket_of(reach, bucket).blob("in parallel")
        ways = {"chunk_size": 5 << 20, "max_workers": 3, "worker_type": transfer_manager.THREAD}
        transfer_manager.upload_chunks_concurrently(there, blob, **ways)
        blob.reload()
        transfer_manager.download_chunks_concurrently(blob, back, **ways)
        with open(back, "rb") as file:
            return file.read() == content


def gone(reach: Reach, bucket: str) -> list[str]:
    """Everything deleted, then the bucket; those that are left."""
    with pointed_at(reach):
        place = bucket_of(reach, bucket)
        place.blob("x/y").upload_from_string(b"x")
        client = place.client
        place.delete(force=True)
        return [one.name for one in client.list_buckets() if one.name == bucket]


def versions(reach: Reach, bucket: str) -> list[Any]:
    with pointed_at(reach):
        place = bucket_of(reach, bucket)
        place.versioning_enabled = True
        place.add_lifecycle_delete_rule(age=365, number_of_newer_versions=9, is_live=False)
        place.patch()
        blob = place.blob("x")
        for content in (b"first", b"second"):
            blob.upload_from_string(content)
        old = next(iter(place.list_blobs(versions=True)))
        place.delete_blob("x")  # without its generation, which the blob knows: with that it goes for good
        told = [one.time_deleted is not None for one in place.list_blobs(versions=True)]
        place.copy_blob(old, place, "x", source_generation=old.generation)
        restored = place.blob("x").download_as_bytes()
        place.delete_blob("x", generation=old.generation)
        left = [one.download_as_bytes() for one in place.list_blobs(versions=True)]
        place.reload()
        return [
            told,
            restored.decode(),
            [one.decode() for one in left],
            place.versioning_enabled,
            [dict(rule)["condition"] for rule in place.lifecycle_rules],
        ]


def versions_through_gcsfs(reach: Reach, bucket: str) -> list[Any]:
    with pointed_at(reach):
        try:
            import gcsfs
        except ImportError:
            return ["absent"]
        fs = gcsfs.GCSFileSystem(project="p1", token="anon", skip_instance_cache=True, version_aware=True)
        fs.mkdir(bucket, enable_versioning=True)
        generations = []
        for content in (b"v1", b"v2"):
            fs.pipe(f"{bucket}/x", content)
            fs.invalidate_cache()
            generations.append(fs.info(f"{bucket}/x")["generation"])
        seen = [fs.cat(f"{bucket}/x#{generation}").decode() for generation in generations]
        listed = sorted(one["generation"] for one in fs.ls(bucket, versions=True, detail=True))
        fs.rm(f"{bucket}/x#{generations[0]}")
        fs.invalidate_cache()
        left = [one["generation"] for one in fs.ls(bucket, versions=True, detail=True)]
        return [seen, listed == sorted(generations), left == generations[1:]]


def through_gcsfs(reach: Reach, bucket: str) -> list[Any]:
    with pointed_at(reach):
        try:
            import gcsfs
        except ImportError:
            return ["absent"]
        fs = gcsfs.GCSFileSystem(project="p1", token="anon", skip_instance_cache=True)
        fs.mkdir(bucket)
        content = noise(12 << 20)
        with fs.open(f"{bucket}/big", "wb", block_size=5 << 20) as out:
            out.write(content)
        fs.pipe(f"{bucket}/a/b.txt", b"hello")
        fs.cp(f"{bucket}/a/b.txt", f"{bucket}/c/d.txt")
        fs.mv(f"{bucket}/c/d.txt", f"{bucket}/e.txt")
        seen = sorted(path.removeprefix(bucket) for path in fs.find(bucket))
        whole = fs.cat(f"{bucket}/big") == content
        piece = fs.cat_file(f"{bucket}/big", start=5_000_000, end=5_000_100) == content[5_000_000:5_000_100]
        fs.rm(bucket, recursive=True)
        return [seen, whole, piece, fs.exists(bucket)]
