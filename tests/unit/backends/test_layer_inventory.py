"""Layers of a cluster's jobs go when nobody needs them: on folders, without a cluster."""

import os
from pathlib import Path

import pytest

from trainshed.backends.cluster.layer_inventory import LayerInventory
from trainshed.core.errors import Conflict, NotFound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, used_at in (("old", 1000), ("new", 2000), ("draft.new", 3000)):
        (tmp_path / name / "site").mkdir(parents=True)
        (tmp_path / name / "site/module.py").write_bytes(bytes(100))
        os.utime(tmp_path / name, (used_at, used_at))
    return tmp_path


async def test_layers_are_told_with_their_size_and_last_use_and_drafts_are_not(folder: Path):
    kept = await LayerInventory(folder, set).kept()
    assert {(layer.id, layer.size, layer.used_at.timestamp()) for layer in kept} == {
        ("old", 100, 1000),
        ("new", 100, 2000),
    }


async def test_a_layer_that_a_run_is_brought_stays(folder: Path):
    inventory = LayerInventory(folder, lambda: {str(folder / "old")})
    with pytest.raises(Conflict, match="old is used"):
        await inventory.remove("old")
    assert await inventory.remove("new") == ("new",)
    assert sorted(os.listdir(folder)) == ["draft.new", "old"]
    with pytest.raises(NotFound):
        await inventory.remove("new")


async def test_the_space_is_that_of_its_disk(folder: Path):
    free, whole = await LayerInventory(folder, set).space() or (0, 0)
    assert 0 < free < whole
