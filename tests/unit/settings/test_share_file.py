"""The file of shares: what it may say, every mistake at once, and what happens when it changes."""

import tomllib
from pathlib import Path

import pytest

from trainshed.core.errors import Invalid
from trainshed.core.queue.share import ShareTree
from trainshed.settings.share_file import ShareFile, read_shares
from trainshed.settings.values import SettingsError

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
        "share.b.nominal",
    }


def test_a_parent_that_is_not_there_and_a_circle_are_refused():
    faults = violations('[share.a]\nparent = "b"\n[share.b]\nparent = "a"\n[share.c]\nparent = "nobody"')
    assert faults["share.c.parent"] == "must be one of a, b, c, root, not 'nobody'."
    assert faults["share.a.parent"].startswith("leads back to 'a'")


def test_what_one_look_finds_hides_nothing_that_another_finds():
    faults = violations(
        """
        [share.a]
        colour = "red"
        parent = "nobody"
        projects = ["p"]
        nominal = { gpus = 1 }
        [share.b]
        parent = "c"
        projects = ["p"]
        [share.c]
        parent = "b"
        borrow = { cpus = 1 }
        [share.d]
        nominal = { gpus = 1 }
        [share.e]
        parent = "d"
        nominal = { gpus = 2 }
        """
    )
    assert faults.keys() == {
        "share.a.colour",
        "share.a.parent",
        "share.b.parent",
        "share.b.projects",
        "share.c.parent",
        "share.c.borrow.cpus",
        "share.d.nominal.gpus",
    }


def test_what_only_follows_from_a_mistake_is_not_told():
    faults = violations(
        """
        [share]
        x = 3
        [share.a]
        parent = "x"
        nominal = { gpus = "many" }
        borrow = { gpus = 1 }
        [share.b]
        parent = "a"
        nominal = { gpus = 4 }
        """
    )
    assert faults.keys() == {"share.x", "share.a.nominal.gpus"}


@pytest.mark.parametrize("name", ["", " ", "a/b", "a\nb", "\x1b[31mred", "a" * 129, "\u202egnp"])
def test_a_share_or_project_whose_name_nobody_could_write_or_read_is_refused(name: str):
    row = {"nominal": {"gpus": 1}}
    for document in (
        {name: row},
        {"a": {**row, "projects": [name]}},
        {name: row, "b": {**row, "parent": name}},
    ):
        with pytest.raises(Invalid) as refused:
            read_shares({"share": document}, {})
        [fault] = refused.value.violations
        assert fault.sentence.isprintable() and len(fault.sentence) < 300
        assert "128 printable characters without '/'" in fault.sentence


def test_what_the_root_cannot_have_is_refused_with_what_mends_it():
    faults = violations('[share.root]\nparent = "nobody"\nweight = 2\nbudget = 3\nper_user = { gpus = 1 }')
    assert faults == {
        "share.root.parent": "is 'nobody', and the root is below no share: leave it out.",
        "share.root.weight": "is 2, and the root is beside no share: leave it out.",
        "share.root.per_user.gpus": "is 1 GPU, and no share has a nominal amount of gpus. Divided are none. "
        "Name it in the nominal amounts too, or leave it out here.",
    }


def test_projects_are_a_list_and_the_mark_of_all_projects_is_none():
    assert violations('[share.a]\nprojects = "vision"') == {
        "share.a.projects": "must be a list of names such as [\"vision\"], not 'vision'."
    }
    assert violations('[share.a]\nprojects = ["-"]').keys() == {"share.a.projects"}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"weight": 10**400}, "weight"),
        ({"weight": 5e-324}, "weight"),
        ({"weight": float("nan")}, "weight"),
        ({"budget": 10**400}, "budget"),
        ({"nominal": {"cpus": 10**400}}, "nominal.cpus"),
        ({"nominal": {"memory": "1e300GiB"}}, "nominal.memory"),
        ({"nominal": {"gpus": 1e308}}, "nominal.gpus"),
    ],
)
def test_numbers_that_no_machine_has_are_refused(row: dict[str, object], field: str):
    with pytest.raises(Invalid) as refused:
        read_shares({"share": {"a": row}}, {})
    assert [fault.field for fault in refused.value.violations] == [f"share.a.{field}"]
    assert len(str(refused.value)) < 300


def test_no_memory_may_be_written_as_a_size():
    assert read('[share.a]\nnominal = { memory = "0GiB" }').nominal["a"] == {"memory": 0}


def test_a_tree_is_neither_too_deep_nor_too_wide():
    deep = {f"s{at}": {"parent": f"s{at - 1}"} if at else {} for at in range(25)}
    with pytest.raises(Invalid, match="is below more than 19 others"):
        read_shares({"share": deep}, {})
    with pytest.raises(Invalid, match="has 1001 shares"):
        read_shares({"share": {f"s{at}": {} for at in range(1001)}}, {})
    lost = {f"s{at}": {"parent": "nobody"} for at in range(1000)}
    with pytest.raises(Invalid) as refused:
        read_shares({"share": lost}, {})
    assert len(refused.value.violations) == 100 and len(str(refused.value)) < 50_000


def test_a_file_with_such_numbers_leaves_the_shares_as_they_are(tmp_path: Path):
    file = tmp_path / "shares.toml"
    file.write_text(GOOD)
    shares = ShareFile(file, {T4: ""})
    before = shares()
    for number in ("9" * 400, "0x" + "f" * 5000, "9" * 5000):
        for line in (f"weight = {number}", f"nominal = {{ gpus = {number} }}", f"colour = {number}"):
            file.write_text(f"[share.a]\n{line}")
            assert shares() is before


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
