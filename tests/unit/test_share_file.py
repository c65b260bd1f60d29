"""The file of shares: what it may say, every mistake at once, and what happens when it changes."""

import tomllib
from pathlib import Path

import pytest

from trainshed.core.errors import Invalid
from trainshed.core.share import ShareTree
from trainshed.setting_values import SettingsError
from trainshed.share_file import ShareFile, read_shares

T4 = "NVIDIA_TESLA_T4"
GOOD = """
[share.research]
[share.vision]
parent = "research"
projects = ["vision", "vision-dev"]
nominal = { gpus = 4, memory = "64GiB" }
borrow = { gpus = 2 }
lend = { gpus = 0 }
per_user = { gpus = 3 }
weight = 2
[share.language]
parent = "research"
projects = ["language"]
nominal = { gpus = 2, memory = 0 }
"""


def read(text: str) -> ShareTree:
    return read_shares(tomllib.loads(text), {T4: ""})


def violations(text: str) -> dict[str, str]:
    with pytest.raises(Invalid) as refused:
        read(text)
    return {fault.field: fault.description for fault in refused.value.violations}


def test_a_share_that_names_no_amount_has_what_those_below_it_have_together():
    tree = read(GOOD)
    assert tree.nominal["research"] == {"gpus": 6, "memory": 64 << 30}
    assert tree.paths["vision"] == ("vision", "research", "root")


def test_a_project_belongs_to_the_share_that_names_it_and_else_to_the_root():
    tree = read(GOOD)
    assert [tree.share_of(name) for name in ("vision-dev", "language", "other")] == [
        "vision",
        "language",
        "root",
    ]


def test_a_share_may_have_its_nominal_amount_and_what_it_may_borrow():
    tree = read(GOOD)
    assert tree.limit("vision", "gpus") == 6
    assert tree.limit("language", "gpus") == float("inf")


def test_an_empty_file_divides_nothing():
    assert read("").divided == frozenset()


def test_every_mistake_is_told_at_once_with_its_path():
    assert violations(
        """
        other = 1
        [share.a]
        nominal = { gpus = 1.5, cpu = 2, memory = "much" }
        weight = 0
        colour = "red"
        [share.b]
        projects = [1]
        borrow = 4
        """
    ).keys() == {
        "other",
        "share.a.nominal.gpus",
        "share.a.nominal.cpu",
        "share.a.nominal.memory",
        "share.a.weight",
        "share.a.colour",
        "share.b.projects",
        "share.b.borrow",
    }


def test_a_parent_that_is_not_there_and_a_circle_are_refused():
    faults = violations('[share.a]\nparent = "b"\n[share.b]\nparent = "a"\n[share.c]\nparent = "nobody"')
    assert faults["share.c.parent"] == "must be one of a, b, c, root, not 'nobody'."
    assert faults["share.a.parent"].startswith("leads back to 'a'")


def test_shares_below_one_cannot_have_more_than_it_together():
    faults = violations(
        """
        [share.a]
        nominal = { gpus = 4 }
        [share.b]
        parent = "a"
        nominal = { gpus = 3 }
        [share.c]
        parent = "a"
        nominal = { gpus = 2 }
        """
    )
    assert faults == {
        "share.a.nominal.gpus": "is 4 GPUs, and the shares below it have 5 GPUs together: "
        "raise it, or lower theirs."
    }


def test_every_share_says_how_much_it_has_of_each_divided_resource():
    faults = violations("[share.a]\nnominal = { gpus = 4 }\n[share.b]\nnominal = { cpus = 2 }")
    assert faults.keys() == {"share.a.nominal", "share.b.nominal"}


def test_a_project_belongs_to_one_share_only_and_the_root_has_no_amounts():
    faults = violations(
        '[share.a]\nprojects = ["p"]\nnominal = {gpus = 1}\n'
        '[share.b]\nprojects = ["p"]\nnominal = {gpus = 1}\nborrow = {cpus = 1}\n'
        "[share.root]\nlend = {gpus = 1}\n"
    )
    assert faults.keys() == {"share.b.projects", "share.b.borrow.cpus", "share.root.lend"}


def test_a_file_that_changes_is_read_again_and_a_wrong_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    file = tmp_path / "shares.toml"
    file.write_text(GOOD)
    shares = ShareFile(file, {T4: ""})
    before = shares()
    assert shares() is before
    file.write_text("[share.a]\nnominal = { gpus = 'x' }")
    assert shares() is before
    assert "share.a.nominal.gpus" in caplog.text
    file.unlink()
    assert shares() is before
    file.write_text("[share.a]\nnominal = { NVIDIA_TESLA_T4 = 8 }")
    assert shares().divided == {T4}


@pytest.mark.parametrize("text", ["[share.a]\nweight = -1", "not toml"])
def test_a_server_does_not_start_with_a_wrong_file(tmp_path: Path, text: str):
    file = tmp_path / "shares.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match="--shares"):
        ShareFile(file, {})


def test_a_server_does_not_start_without_the_file_it_names(tmp_path: Path):
    with pytest.raises(SettingsError, match="cannot read"):
        ShareFile(tmp_path / "none.toml", {})
