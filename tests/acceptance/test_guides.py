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


def blocks(page: str, kind: str = "sh") -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", (GUIDE / page).read_text(), re.DOTALL | re.MULTILINE)


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


@pytest.mark.slow
def test_a_home_is_backed_up_and_restored_as_the_page_says(bash: Shell, tmp_path: Path) -> None:
    script = (
        "trainshed storage buckets create gs://kept && echo a,b | trainshed storage cp - gs://kept/rows.csv"
    )
    done = bash(script)
    assert done.returncode == 0, done.stderr
    for block in blocks("backup.md"):
        done = bash(f"set -euo pipefail\n{block}", GRACE)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    with LiveServer(home=tmp_path / "restored") as other:
        assert bash(f"trainshed storage cat gs://kept/rows.csv --url {other.url}").stdout == "a,b\n"

    # What is in the crontab, as cron gives it to the shell.
    [line] = [line for line in "".join(blocks("backup.md", "text")).splitlines() if "* * *" in line]
    folder = tmp_path / "backups"
    folder.mkdir()
    command = line.split(maxsplit=5)[5].replace("\\%", "%").replace("/backups", str(folder))
    for code in (0, 1):  # the second time there is one of that day
        assert bash(command, GRACE).returncode == code
    [backup] = folder.iterdir()
    [date] = re.findall(r"\d{4}-\d\d-\d\d", backup.name)
    assert backup.name == f"{date}.tar"
