"""The images in an archive that `docker save`, `podman save` or an OCI tool wrote, and their list anew. Pure.

`service/image_uploads.py` calls it. Engines differ in which lists of an archive they read, and how. So what
is passed on to an engine has one list, of what was read here, and nothing else that could name an image.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trainshed.core.errors import Invalid, Violation
from trainshed.core.supplies.image import parse, refusal

LIST = "manifest.json"
MOST_TEXT = 1 << 20  # bytes of a list
MOST_IMAGES = 200
MOST_LAYERS = 1000  # of an image; engines take fewer

_INDEX = "index.json"
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedImage:
    config: str  # its path in the archive
    layers: tuple[str, ...]  # their paths
    names: tuple[str, ...]  # full


def read_archive(read: Callable[[str], bytes | None]) -> tuple[ArchivedImage, ...]:
    """`read` gives a file of the archive; None where there is none. Raises Invalid."""
    try:
        if (text := read(LIST)) is not None:
            rows = _listed(json.loads(text))
            return tuple(_docker_image(row) for row in rows)
        if (text := read(_INDEX)) is not None:
            rows = _listed(json.loads(text)["manifests"])
            return tuple(_oci_image(row, read) for row in rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _wrong("its list of images cannot be read") from error
    raise _wrong("it has no list of images")


def render_list(images: Iterable[ArchivedImage]) -> bytes:
    rows = [
        {"Config": image.config, "RepoTags": list(image.names), "Layers": list(image.layers)}
        for image in images
    ]
    return json.dumps(rows).encode()


def _listed(rows: Any) -> list[Mapping[str, Any]]:
    if not isinstance(rows, list) or len(cast("list[Any]", rows)) > MOST_IMAGES:
        raise TypeError
    return cast("list[Mapping[str, Any]]", rows)


def _docker_image(row: Mapping[str, Any]) -> ArchivedImage:
    layers = _texts(row.get("Layers") or [])
    return ArchivedImage(
        config=_text(row["Config"]), layers=layers, names=tuple(_full(_texts(row.get("RepoTags") or [])))
    )


def _oci_image(row: Mapping[str, Any], read: Callable[[str], bytes | None]) -> ArchivedImage:
    text = read(_blob(row))
    manifest = json.loads(text or b"{}")
    if "manifests" in manifest:
        raise _wrong("it has an image of several platforms: save the image of one of them")
    notes: Mapping[str, Any] = row.get("annotations") or {}
    names = [_text(notes[key]) for key in _NAMES if notes.get(key)][:1]
    layers = tuple(_blob(layer) for layer in manifest["layers"])
    if len(layers) > MOST_LAYERS:
        raise TypeError
    return ArchivedImage(config=_blob(manifest["config"]), layers=layers, names=tuple(_full(names)))


def _blob(descriptor: Mapping[str, Any]) -> str:
    algorithm, _, digest = _text(descriptor["digest"]).partition(":")
    return f"blobs/{algorithm}/{digest}"


def _full(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if sentence := refusal(name):
            raise Invalid((Violation("", sentence),))
        if (reference := parse(name)).digest:
            raise Invalid((Violation("", f"Image '{name}' cannot be loaded with a digest in its name."),))
        yield reference.canonical


def _texts(words: Any) -> tuple[str, ...]:
    if not isinstance(words, list) or len(cast("list[Any]", words)) > MOST_LAYERS:
        raise TypeError
    return tuple(_text(word) for word in cast("list[Any]", words))


def _text(word: Any) -> str:
    if not isinstance(word, str):
        raise TypeError
    return word


def _wrong(why: str) -> Invalid:
    what = f"What was sent is no archive of images, as `trainshed images save` writes them: {why}."
    return Invalid((Violation("", what),))
