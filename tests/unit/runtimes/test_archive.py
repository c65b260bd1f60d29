"""What is looked into before it is unpacked: every hostile archive is refused with a sentence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import packages
from trainshed.core.supplies.package import FREE, MOST_FILES, RATIO, UNPACKED
from trainshed.runtimes import archive


def told(file: Path, *limits: int) -> dict[str, object]:
    numbers = limits or (UNPACKED, MOST_FILES, FREE, RATIO)
    words = [sys.executable, "-I", "-S", archive.__file__, str(file), *map(str, numbers)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", packages.HOSTILE)
def test_a_hostile_archive_is_refused_with_a_sentence_and_leaves_nothing(kind: str, tmp_path: Path):
    name, make, sentence = packages.HOSTILE[kind]
    file = tmp_path / name
    file.write_bytes(make())
    assert sentence in str(told(file)["refused"])
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "content", "needs"),
    [
        ("a.tar.gz", packages.sdist(), ["setuptools"]),
        ("a.tar.gz", packages.sdist(top="./"), ["setuptools"]),
        ("a.zip", packages.zipped({f"a/{k}": v for k, v in packages.files().items()}), ["setuptools"]),
        ("a-1-py3-none-any.whl", packages.wheel(commands="go = trainer.task:main"), None),
        (
            "a.tar.gz",
            packages.sdist({"pyproject.toml": "[build-system]\nrequires = ['Hatchling>=1', 'wheel']\n"}),
            ["hatchling", "wheel"],
        ),
        ("a.tar.gz", packages.sdist({"pyproject.toml": "[project]\n"}), ["setuptools"]),
        ("a.tar.gz", packages.sdist({"pyproject.toml": "wrong = ["}), ["setuptools"]),
        ("a.tar.gz", packages.sdist({"pyproject.toml": "build-system = 3"}), ["setuptools"]),
    ],
)
def test_an_honest_one_is_told_with_its_hash_and_what_builds_it(
    name: str, content: bytes, needs: list[str] | None, tmp_path: Path
):
    file = tmp_path / name
    file.write_bytes(content)
    found = told(file)
    assert (found["refused"], found["needs"]) == ("", needs)
    assert len(str(found["sha256"])) == 64


def test_more_files_than_may_be_are_refused(tmp_path: Path):
    file = tmp_path / "many.tar.gz"
    file.write_bytes(packages.sdist())
    assert "more than 2 files" in str(told(file, 1 << 20, 2, 1 << 20, 100)["refused"])
