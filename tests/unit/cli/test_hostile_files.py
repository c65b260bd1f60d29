"""Files that would take a reader all its memory or its stack are refused with a sentence."""

import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.terminal import Terminal
from trainshed.cli.failure import CommandFailed
from trainshed.cli.job_file import LARGEST, read, read_bytes
from trainshed.core.errors import Invalid
from trainshed.dialects.kubernetes.cli.file import documents
from trainshed.runtimes.rows import load_rows
from trainshed.settings.file import read_file
from trainshed.settings.values import SettingsError

DEEP = 5000
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"


def doubled(form: str) -> str:
    """Thirty levels, each of which is the one before it, nine times."""
    lines = [f"a0: &a0 {form % 'x'}"]
    lines += [f"a{n}: &a{n} {form % ', '.join([f'*a{n - 1}'] * 9)}" for n in range(1, 30)]
    return "\n".join((*lines, "workerPoolSpecs: [*a29]", ""))


BOMBS = {
    "lists": doubled("[%s]"),
    "merged": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 30))
    + "workerPoolSpecs: [*a29]\n",
    "one long text": f"a: &a {'x' * 100_000}\nworkerPoolSpecs: [{', '.join(['*a'] * 1000)}]\n",
    "in one another": "a: &a [&b [*a, *b]]\nworkerPoolSpecs: []\n",
}
DEPTHS = {
    "lists": "workerPoolSpecs: " + "[" * DEEP + "]" * DEEP + "\n",
    "closed by nobody": "workerPoolSpecs: " + "[" * DEEP,
    "mappings": "workerPoolSpecs: " + "{a: " * DEEP + "}" * DEEP + "\n",
    "JSON": json.dumps({"workerPoolSpecs": 0})[:-2] + '[{"a":' * DEEP + "0" + "}]" * DEEP + "}",
    "dashes": "workerPoolSpecs:\n" + "- " * DEEP + "x\n",
    "names": "? " * DEEP + "x\n",
    "aliases": "a0: &a0 [x]\n"
    + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 1500))
    + "workerPoolSpecs: [*a1499]\n",
}


def as_job(text: str) -> object:
    return read("job.yaml", text)


def as_manifest(text: str) -> object:
    head = "" if text.startswith("{") else POD
    return documents("pod.yaml", head + text.replace("workerPoolSpecs", "spec"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("reader", [as_job, as_manifest])
@pytest.mark.parametrize("text", [*BOMBS.values(), *DEPTHS.values()], ids=[*BOMBS, *DEPTHS])
def test_a_bomb_is_a_sentence_in_little_memory(text: str, reader: Callable[[str], object]):
    tracemalloc.start()
    try:
        with pytest.raises(CommandFailed) as caught:
            reader(text)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    message = caught.value.message
    assert len(message) < 300
    assert any(word in message for word in ("more than", "contains itself")), message


def test_what_people_write_with_aliases_is_read_as_before():
    text = "x: &pool {replicaCount: 1}\nworkerPoolSpecs:\n- *pool\n- {<<: *pool, machineSpec: {}}\n"
    assert read("job.yaml", text).body["jobSpec"]["workerPoolSpecs"] == [
        {"replicaCount": 1},
        {"replicaCount": 1, "machineSpec": {}},
    ]


def test_a_file_without_end_is_no_job():
    with pytest.raises(CommandFailed, match="larger than 4 MiB"):
        read_bytes("/dev/zero")
    assert LARGEST == 4 << 20


def test_deep_files_of_commands_are_told_as_wrong(terminal: Terminal, tmp_path: Path):
    deep = "[" * 100_000
    rules, book = tmp_path / "rules.json", tmp_path / "book.ipynb"
    rules.write_text(deep)
    book.write_text(deep)
    for words in (
        ["storage", "buckets", "update", "gs://b", "--lifecycle-file", str(rules)],
        ["submit", str(book)],
    ):
        result = terminal(*words)
        assert result.code != 0 and "error: " in result.err and "Traceback" not in result.err
        assert "holds no JSON" in result.err or "no notebook" in result.err, result.err


def test_deep_settings_are_told_as_wrong(tmp_path: Path):
    file = tmp_path / "trainshed.toml"
    file.write_text("warm = " + "[" * 100_000)
    with pytest.raises(SettingsError, match="is not TOML"):
        read_file(file, {"warm": True})
    with pytest.raises(Invalid, match="cannot be read"):
        load_rows(file)


def test_the_work_for_a_file_grows_with_its_documents_not_with_their_square() -> None:
    def calls(count: int) -> int:
        made = 0

        def note(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event == "call"

        text = "apiVersion: v1\nkind: Pod\n---\n" * count
        sys.setprofile(note)
        try:
            documents("pods.yaml", text)
        finally:
            sys.setprofile(None)
        return made

    calls(1)  # what is only done once
    assert calls(400) < 5 * calls(100)
