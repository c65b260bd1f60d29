"""The images of an archive, whoever wrote it and however its lists are made up."""

import json
from typing import Any

import pytest

from trainshed.core.errors import Invalid
from trainshed.core.supplies.image_archive import ArchivedImage, read_archive, render_list

A = "blobs/sha256/a"


def archive(files: dict[str, Any]) -> tuple[ArchivedImage, ...]:
    texts = {
        path: text if isinstance(text, bytes) else json.dumps(text).encode() for path, text in files.items()
    }
    return read_archive(texts.get)


def row(*names: str, **more: object) -> dict[str, object]:
    return {"Config": "c.json", "RepoTags": list(names), "Layers": ["1/layer.tar", "2/layer.tar"], **more}


def test_names_are_full_and_the_list_that_is_written_has_nothing_else() -> None:
    images = archive(
        {"manifest.json": [row("app:1", "gcr.io/b/x", repotags=["hidden:1"], Parent="p"), row()]}
    )
    assert [image.names for image in images] == [("docker.io/library/app:1", "gcr.io/b/x:latest"), ()]
    assert json.loads(render_list(images[:1])) == [
        {
            "Config": "c.json",
            "RepoTags": ["docker.io/library/app:1", "gcr.io/b/x:latest"],
            "Layers": ["1/layer.tar", "2/layer.tar"],
        }
    ]


def test_of_names_that_are_given_twice_those_are_written_that_were_read() -> None:
    text = b'[{"Config": "c", "Layers": [], "RepoTags": ["a:1"], "RepoTags": ["b:1"]}]'
    [image] = archive({"manifest.json": text})
    assert json.loads(render_list([image]))[0]["RepoTags"] == list(image.names)


def test_an_index_of_oci_names_its_images_in_annotations() -> None:
    manifest = {"config": {"digest": "sha256:c"}, "layers": [{"digest": "sha256:1"}, {"digest": "sha256:2"}]}
    notes = {"org.opencontainers.image.ref.name": "app:2", "io.containerd.image.name": "gcr.io/b/app:1"}
    one, other = {"digest": "sha256:a", "annotations": notes}, {"digest": "sha256:a"}
    images = archive({"index.json": {"manifests": [one, other]}, A: manifest})
    assert images[0] == ArchivedImage(
        config="blobs/sha256/c",
        layers=("blobs/sha256/1", "blobs/sha256/2"),
        names=("gcr.io/b/app:1",),
    )
    assert images[1].names == ()
    [named] = archive(
        {
            "index.json": {
                "manifests": [{**one, "annotations": {"org.opencontainers.image.ref.name": "app:2"}}]
            },
            A: manifest,
        }
    )
    assert named.names == ("docker.io/library/app:2",)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "it has no list of images"),
        ({"repositories": {"app": {"1": "x"}}}, "it has no list of images"),
        ({"manifest.json": b"["}, "cannot be read"),
        ({"manifest.json": b"[" * 100_000}, "cannot be read"),
        ({"manifest.json": {}}, "cannot be read"),
        ({"manifest.json": [1]}, "cannot be read"),
        ({"manifest.json": [{"RepoTags": []}]}, "cannot be read"),
        ({"manifest.json": [row(RepoTags="a")]}, "cannot be read"),
        ({"manifest.json": [row(RepoTags=[1])]}, "cannot be read"),
        ({"manifest.json": [row(Layers=["x"] * 1001)]}, "cannot be read"),
        ({"manifest.json": [row()] * 201}, "cannot be read"),
        ({"manifest.json": [row("UPPER:1")]}, "Image 'UPPER:1' cannot be"),
        ({"manifest.json": [row("gcr.io/b/x/../y:1")]}, "cannot be"),
        ({"manifest.json": [row(f"a@sha256:{'0' * 64}")]}, "with a digest in its name"),
        ({"index.json": {}}, "cannot be read"),
        (
            {"index.json": {"manifests": [{"digest": "sha256:a"}]}, A: {"manifests": []}},
            "of several platforms",
        ),
        ({"index.json": {"manifests": [{"digest": "sha256:none"}]}}, "cannot be read"),
        ({"index.json": {"manifests": [{"digest": "sha256:a"}]}, A: []}, "cannot be read"),
    ],
)
def test_what_is_no_archive_is_refused(files: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid) as error:
        archive(files)
    assert words in error.value.message
