"""Pages of the guide that promise to be pasted, pasted: every `sh` block, in order, against a live server.

The runtimes they name are stood in for by small ones of the same names: what is shown is the commands.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer
from tests.shell import Shell

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
ROWS = """
[[runtimes]]
name = "trainshed/tensorflow"
version = "2.21.0"
google = ["tf", "tf2"]
"""
GRACE = 240.0  # an environment is built

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Shell]:
    rows = tmp_path / "rows.toml"
    rows.write_text(ROWS)
    with LiveServer("--cpus", "64", "--memory", "512GiB", "--runtimes", str(rows)) as live:
        project = tmp_path / "project"
        project.mkdir()
        yield Shell(live, project, {"HOME": str(tmp_path)})
        assert "Traceback" not in live.said(), live.said()


def blocks(page: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", (GUIDE / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_a_vertex_project_moves_here_as_the_page_says(bash: Shell) -> None:
    said = ""
    for block in blocks("ai-platform.md"):
        done = bash(f"set -euo pipefail\n{block}", GRACE)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        said += done.stdout + done.stderr
    for job in ("digits_1", "digits_2", "digits-3", "digits-4"):
        place = f"gs://my-models/{job}/model/model.json"
        assert bash(f"trainshed storage cat {place}").stdout == '{"weights": [1, 2, 3]}', f"{place}\n{said}"
    assert "gs://my-models/digits_1/model/model.json\n" in said
    assert said.count("epoch 2, loss 0.333") == 4, said  # of three jobs, and of digits_1 twice
