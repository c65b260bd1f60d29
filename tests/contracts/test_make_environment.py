"""A new environment of plain Python has what `python -m venv` would have put into it."""

import ensurepip
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from trainshed.runtimes import make_environment

BUNDLED = Path(ensurepip.__file__).with_name("_bundled")


def make(folder: Path, *options: str) -> Path:
    """By a process, as builds do it; the interpreter of the environment."""
    script = make_environment.__file__
    subprocess.run([sys.executable, "-I", script, folder, *options], check=True, timeout=60)
    return folder / "bin" / "python"


def test_an_environment_has_the_packages_that_come_with_the_interpreter(tmp_path: Path):
    python = make(tmp_path / "new")
    done = subprocess.run([python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True)
    expected = {wheel.name.split("-py3")[0].replace("-", "==") for wheel in BUNDLED.glob("*.whl")}
    assert set(done.stdout.decode().split()) == expected
    subprocess.run([python, "-m", "pip", "uninstall", "-y", "pip"], check=True, capture_output=True)
    assert not list((tmp_path / "new").glob("lib/python*/site-packages/pip*"))


def test_an_environment_that_sees_another_pip_has_none_of_its_own(tmp_path: Path):
    make(tmp_path / "new", "--without-pip")
    assert not list((tmp_path / "new").glob("lib/python*/site-packages/*"))


def test_venv_installs_pip_where_the_wheels_are_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls: list[dict[str, object]] = []
    monkeypatch.setattr(venv, "create", lambda folder, **options: calls.append(options))  # pyright: ignore
    monkeypatch.setattr(ensurepip, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(ensurepip, "_WHEEL_PKG_DIR", None, raising=False)
    make_environment.main(str(tmp_path / "new"))
    assert calls == [{"symlinks": True, "with_pip": True}]
