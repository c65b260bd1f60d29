"""The guide's page on the SDK, pasted: its `sh` blocks into a shell, its `python` blocks into one session."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.sdk_session import PYTHON
from tests.live import LiveServer
from tests.shell import Shell

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "sdk.md"

pytestmark = [
    pytest.mark.needs_sdk,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-aiplatform is not in .venv-sdk: make sdk"),
]


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Shell]:
    with LiveServer("--cpus", "64", "--memory", "512GiB") as live:
        yield Shell(live, tmp_path)
        assert "Traceback" not in live.said(), live.said()


def test_every_block_of_the_page_does_what_it_says(bash: Shell) -> None:
    session = ""
    said: list[str] = []
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    for language, block in blocks:
        script = f'set -euo pipefail\neval "$(trainshed env)"\n{block}'
        if language == "python":
            # Each block goes on from those before it; what they did is not done again.
            before = re.sub(r"^(?:model = job\.run.*|print.*)\n", "", session, flags=re.MULTILINE)
            (bash.folder / "session.py").write_text(before + block)
            script = f'eval "$(trainshed env)"\n{PYTHON} session.py'
            session += block
        done = bash(script, 240)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}\n{bash.server.said()}"
        said.append(done.stdout)
    assert "PIPELINE_STATE_SUCCEEDED gs://staging/digits/model\n" in said[3]
    assert "trainingPipelines/" in said[4]
    assert said[4].endswith('{"epochs": 5}')
    assert said[5].count("gs://staging/digits/model") == 1
