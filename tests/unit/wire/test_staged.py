"""The shell line of the SDK's from_local_script: read for what it says, answered as it was sent."""

import pytest

from tests.unit.wire.bodies import a_body, a_job, a_pool, parsed
from trainshed.wire.custom_job import render_custom_job
from trainshed.wire.staged import unwrap, wrap

PACKAGE = "staging/aiplatform-2026-11-15-00:39:35.996-aiplatform_custom_trainer_script-0.1.tar.gz"
PIP = f"pip install --upgrade pip && pip3 install -q --user /gcs/{PACKAGE} && "
RUN = 'python3 -m aiplatform_custom_trainer_script.task --out "$AIP_MODEL_DIR" && echo done'


def test_its_package_is_installed_as_packages_are_and_the_rest_is_left_to_the_shell() -> None:
    body = a_body(a_pool(containerSpec={"imageUri": "i", "command": ["sh", "-c", PIP + RUN]}))
    (pool,) = parsed(body).spec.pools
    assert pool.packages == (f"gs://{PACKAGE}",)
    assert pool.command == ("sh", "-c", RUN)
    (told,) = render_custom_job(a_job(body))["jobSpec"]["workerPoolSpecs"]
    assert told["containerSpec"]["command"] == ["sh", "-c", PIP + RUN]


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["sh", "-c", RUN],
        ["bash", "-c", PIP + RUN],
        ["sh", "-c", PIP + RUN, "more"],
        ["sh", "-c", PIP.removesuffix(" && ")],
        ["sh", "-c", (PIP + RUN).replace("staging/", "staging/$HOME ")],
        ["sh", "-c", (PIP + RUN).replace("0.1.tar.gz", "0.1.exe")],
        ["sh", "-c", (PIP + RUN).replace("/gcs/staging", "/gcs/../etc")],
    ],
)
def test_any_other_command_is_left_as_it_is(command: list[str]) -> None:
    assert unwrap(command) == (tuple(command), ())
    assert wrap(command, ()) == command
