"""scripts/console-types, as `make check` runs it, over a console with one module."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRONG = '/** @type {number} */\nexport const width = "wide";\n'

pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "console-types", tmp_path / "scripts")
    shutil.copy(ROOT / "jsconfig.json", tmp_path)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    module = tmp_path / "src" / "trainshed" / "console" / "width.js"
    module.parent.mkdir(parents=True)
    module.write_text(WRONG)
    return tmp_path


def check(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [checkout / "scripts" / "console-types"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_value_of_another_type_fails_the_check(checkout: Path):
    tools = ROOT / ".console-tools"
    if not tools.exists():
        pytest.skip("TypeScript is not here; get it with: scripts/console-assets --tools")
    (checkout / ".console-tools").symlink_to(tools)
    answer = check(checkout)
    assert answer.returncode != 0 and "width.js(2,14): error TS2322" in answer.stdout


def test_without_typescript_it_says_that_nothing_is_checked(checkout: Path):
    answer = check(checkout)
    assert answer.returncode == 0 and "the types of the console are NOT checked" in answer.stderr
