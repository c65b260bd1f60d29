"""Which images were pulled here: kept across lives, and nothing is ours that is not known to be."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainshed.backends.container.image_ledger import ImageLedger, kept_of
from trainshed.core.supplies.image import Image

NAME = "docker.io/library/a:1"


def image(number: int, *names: str) -> Image:
    return Image(id=f"sha256:{number}", names=names, size=number)


def test_what_was_pulled_is_known_in_the_next_life(tmp_path: Path):
    path = tmp_path / "containers" / "images.json"
    ImageLedger(path).pulled("sha256:1", NAME)
    (found,) = kept_of([image(1, "a:1"), image(2, "b:1")], ImageLedger(path))
    assert (found.id, found.names, found.size) == ("sha256:1", (NAME,), 1)
    assert found.used_at <= datetime.now(UTC)


def test_a_use_is_newer_than_the_pull_and_makes_nothing_ours():
    ledger = ImageLedger(None)
    ledger.pulled("sha256:1", NAME)
    before = ledger.entries["sha256:1"].used_at
    ledger.used("sha256:1")
    ledger.used("sha256:2")
    found = kept_of([image(1, "a:1"), image(2, "b:1")], ledger)
    assert [one.id for one in found] == ["sha256:1"]
    assert found[0].used_at >= before


def test_a_name_that_somebody_gave_it_keeps_an_image():
    ledger = ImageLedger(None)
    ledger.pulled("sha256:1", NAME)
    assert kept_of([image(1, "a:1", "localhost/mine:1")], ledger) == ()
    ledger.pulled("sha256:1", "localhost/mine:1")
    assert len(kept_of([image(1, "a:1", "localhost/mine:1")], ledger)) == 1
    assert len(kept_of([image(1)], ledger)) == 1  # it lost its names to newer ones


def test_what_is_gone_from_the_engine_is_forgotten(tmp_path: Path):
    ledger = ImageLedger(tmp_path / "images.json")
    ledger.pulled("sha256:1", NAME)
    kept_of([], ledger)
    assert ImageLedger(tmp_path / "images.json").entries == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"sha256:1": {}}', '{"sha256:1": {"used": "x", "names": []}}']
)
def test_a_file_that_cannot_be_read_makes_nothing_ours(tmp_path: Path, text: str):
    (tmp_path / "images.json").write_text(text)
    assert kept_of([image(1, "a:1")], ImageLedger(tmp_path / "images.json")) == ()
