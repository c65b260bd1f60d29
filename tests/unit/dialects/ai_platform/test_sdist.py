"""What --package-path makes of a folder: the same bytes from the same files, and nothing left behind."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from trainshed.cli import archive, python_project
from trainshed.cli.failure import CommandFailed
from trainshed.dialects.ai_platform.cli import sdist

FILES = {
    "__init__.py": "",
    "task.py": "print('trained')\n",
    "model/__init__.py": "",
    "model/layers.py": "WIDTH = 3\n",
    "model/shape.json": "{}",
    "loose/script.py": "LOOSE = 1\n",
    "data-files/words [1].txt": "a b",
    "model/__pycache__/layers.cpython-311.pyc": "old",
    ".git/config": "secret",
}
TAKEN = sorted(set(FILES) - {"model/__pycache__/layers.cpython-311.pyc", ".git/config"})


def lay(folder: Path, files: dict[str, str] = FILES) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def inner(made: Path) -> list[str]:
    return sorted(name.partition("/")[2] for name in archive.names(made))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    found = tmp_path / "out"
    found.mkdir()
    return found


def built(package: Path, out: Path) -> Path:
    described = python_project.project_at(package.parent)
    assert described is not None
    return python_project.build(described, package, out)


def test_a_package_is_packed_whole_with_what_describes_it(tmp_path: Path, out: Path) -> None:
    package = lay(tmp_path / "src" / "trainer")
    before = tree(tmp_path / "src")
    made = sdist.write(sdist.package_at(str(package)), out)
    assert made.name == "trainer-0.0.0.tar.gz"
    assert inner(made) == sorted(["PKG-INFO", "setup.py", *(f"trainer/{name}" for name in TAKEN)])
    assert tree(tmp_path / "src") == before


def test_the_same_files_have_the_same_bytes_whenever_and_wherever_they_are_packed(
    tmp_path: Path, out: Path
) -> None:
    first, second = (
        lay(tmp_path / "a" / "trainer"),
        lay(tmp_path / "b" / "trainer", dict(reversed(FILES.items()))),
    )
    for path in second.rglob("*"):
        os.utime(path, (1, 1))
    digests = set[str]()
    for number, package in enumerate((first, second)):
        (out / str(number)).mkdir()
        made = sdist.write(package, out / str(number))
        digests.add(hashlib.sha256(made.read_bytes()).hexdigest())
    assert len(digests) == 1
    (second / "task.py").write_text("print('other')\n")
    (out / "2").mkdir()
    assert hashlib.sha256(sdist.write(second, out / "2").read_bytes()).hexdigest() not in digests


def test_what_is_packed_installs_with_its_inner_packages_and_data(tmp_path: Path, out: Path) -> None:
    pytest.importorskip("setuptools")
    made = sdist.write(lay(tmp_path / "trainer"), out)
    with tarfile.open(made) as tar:
        tar.extractall(tmp_path / "x", filter="data")
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build", "--build-lib", str(tmp_path / "lib")],
        cwd=tmp_path / "x" / "trainer-0.0.0",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(tree(tmp_path / "lib")) == {f"trainer/{name}" for name in TAKEN}


def test_a_folder_that_is_no_package_is_refused_in_gclouds_words(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="is not a directory"):
        sdist.package_at(str(tmp_path / "none"))
    (tmp_path / "trainer").mkdir()
    with pytest.raises(CommandFailed, match=r"does not contain an `__init__\.py` file"):
        sdist.package_at(str(tmp_path / "trainer"))


@pytest.mark.parametrize("name", ["tränér", "my trainer", "1st", "__", "a.b"])
def test_a_name_that_no_package_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandFailed, match="cannot be a package's name"):
        sdist.package_at(str(lay(tmp_path / name)))


def test_a_path_may_end_with_a_slash_be_relative_or_be_a_link(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path / "real")
    (tmp_path / "trainer").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    for path in ("trainer/", "./trainer", str(tmp_path / "trainer")):
        assert sdist.write(sdist.package_at(path), out).name == "trainer-0.0.0.tar.gz"


def test_links_are_followed_and_never_in_a_circle(tmp_path: Path, out: Path) -> None:
    package = lay(tmp_path / "trainer", {"__init__.py": "", "task.py": ""})
    lay(tmp_path / "shared", {"words.txt": "a"})
    (package / "shared").symlink_to(tmp_path / "shared")
    (package / "again").symlink_to(package)
    (package / "broken").symlink_to("nowhere")
    names = inner(sdist.write(package, out))
    assert names == [
        "PKG-INFO",
        "setup.py",
        "trainer/__init__.py",
        "trainer/shared/words.txt",
        "trainer/task.py",
    ]


def test_a_file_whose_name_is_not_text_is_refused(tmp_path: Path, out: Path) -> None:
    package = lay(tmp_path / "trainer")
    (package / os.fsdecode(b"\xff.txt")).write_text("")
    with pytest.raises(CommandFailed, match="not UTF-8"):
        sdist.write(package, out)


def test_settings_of_tools_are_no_description(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    (tmp_path / "setup.cfg").write_text("[flake8]\nmax-line-length = 100\n")
    assert python_project.project_at(tmp_path) is None


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "setup.py",
            "from setuptools import setup\nsetup(name='mine', version='1.2', packages=['trainer'])\n",
        ),
        ("setup.cfg", "[metadata]\nname = mine\nversion = 1.2\n[options]\npackages = trainer\n"),
        (
            "pyproject.toml",
            "[project]\nname = 'mine'\nversion = '1.2'\n[tool.setuptools]\npackages = ['trainer']\n",
        ),
    ],
)
def test_a_description_beside_the_package_builds_it_and_leaves_nothing(
    tmp_path: Path, out: Path, file: str, text: str
) -> None:
    pytest.importorskip("setuptools")
    package = lay(tmp_path / "project" / "trainer")
    (package.parent / file).write_text(text)
    before = tree(package.parent)
    made = built(package, out)
    assert made.name == "mine-1.2.tar.gz"
    assert {"trainer/__init__.py", "trainer/task.py", file} <= set(inner(made))
    assert tree(package.parent) == before
    again = out / "again"
    again.mkdir()
    assert built(package, again).read_bytes() == made.read_bytes()


def test_a_setup_that_fails_is_told_with_its_own_last_lines(tmp_path: Path, out: Path) -> None:
    pytest.importorskip("setuptools")
    package = lay(tmp_path / "trainer")
    (tmp_path / "setup.py").write_text("raise RuntimeError('no version today')\n")
    with pytest.raises(CommandFailed, match=r"setup\.py cannot be built") as failure:
        built(package, out)
    assert "no version today" in "\n".join(failure.value.details)


def test_a_setup_that_forgets_the_package_is_told(tmp_path: Path, out: Path) -> None:
    pytest.importorskip("setuptools")
    package = lay(tmp_path / "trainer")
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(name='x', py_modules=[])\n")
    with pytest.raises(CommandFailed, match="leaves out the package trainer"):
        built(package, out)


def test_a_backend_that_is_not_here_is_named(tmp_path: Path, out: Path) -> None:
    package = lay(tmp_path / "trainer")
    (tmp_path / "pyproject.toml").write_text("[build-system]\nrequires = []\nbuild-backend = 'nobodys.api'\n")
    with pytest.raises(CommandFailed, match="needs nobodys to be built") as failure:
        built(package, out)
    assert "install it: pip install nobodys" in failure.value.details


def test_a_description_that_cannot_be_read_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n")
    with pytest.raises(CommandFailed, match=r"cannot read .*pyproject\.toml"):
        python_project.project_at(tmp_path)


def test_a_backend_of_the_projects_own_is_found_where_it_says(tmp_path: Path, out: Path) -> None:
    package = lay(tmp_path / "trainer")
    table = {"requires": [], "build-backend": "own", "backend-path": ["tools"]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    (tmp_path / "pyproject.toml").write_text("\n".join(["[build-system]", *lines]))
    lay(
        tmp_path / "tools",
        {
            "own.py": "import os, tarfile\n"
            "def build_sdist(out, settings=None):\n"
            "    with tarfile.open(os.path.join(out, 'own-1.tar.gz'), 'w:gz') as tar:\n"
            "        tar.add('trainer', 'own-1/trainer')\n"
            "    return 'own-1.tar.gz'\n"
        },
    )
    assert "trainer/task.py" in inner(built(package, out))
