"""The layers of DESIGN, as import contracts: kept by the source, and each of them able to fail."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.rules.source import PACKAGE, ROOT

LINTER = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports(no_cache=True))"

# One import for each contract that breaks it, and where to put it.
OFFENCES = {
    "down": ("core/names.py", "import trainshed.service.job_notifier"),
    "root": ("control/queue.py", "import trainshed.store"),
    "served": ("serving.py", "import trainshed.store"),
    "adapters": ("wire/page.py", "import trainshed.store"),
    "siblings": ("backends/container/loopback.py", "import trainshed.backends.process.render"),
    "plain": ("core/names.py", "import pydantic"),
    "http": ("client/errors.py", "import trainshed.core.errors"),
    "dialects": ("dialects/kubernetes/shape.py", "import trainshed.dialects.ai_platform.schema"),
    "named": ("cli/words.py", "import trainshed.dialects.kubernetes.cli.shape"),
    "fakes": ("service/job_notifier.py", "import trainshed.testing"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder / "src"), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", LINTER],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def contracts() -> dict[str, str]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {c["id"]: c["name"] for c in config["tool"]["importlinter"]["contracts"]}


def test_imports_keep_every_contract():
    done = lint(ROOT)
    assert done.returncode == 0, (
        "an import contract is broken. Move the code where it belongs, or put a port (core/ports.py) "
        f"in between and let trainshed.assembly join the two:\n{done.stdout}{done.stderr}"
    )


def test_each_contract_can_be_broken(tmp_path: Path):
    shutil.copytree(PACKAGE, tmp_path / "src" / "trainshed", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, line in OFFENCES.values():
        with (tmp_path / "src" / "trainshed" / name).open("a") as file:
            file.write(f"\n{line}\n")
    done = lint(tmp_path)
    missed = [name for name in contracts().values() if f"{name} BROKEN" not in done.stdout]
    assert not missed, f"these contracts did not notice an import that breaks them: {missed}\n{done.stdout}"


def test_every_contract_has_an_import_that_breaks_it():
    assert contracts().keys() == OFFENCES.keys(), "add an import to OFFENCES that breaks the new contract"


def test_every_contract_is_named_as_an_argument():
    without = [name for name in contracts().values() if ", so that " not in name]
    assert not without, f"say in the name what the contract is good for (…, so that …): {without}"
