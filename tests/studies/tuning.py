"""Studies for tests: bodies of tuning jobs, and a program that reports how near it came."""

import time
from typing import Any

from tests.live import FINAL, PARENT, PATIENCE, LiveServer, pool, python

TUNING = f"{PARENT}/hyperparameterTuningJobs"

# The nearer x is to 0.3 the better; the last of three reports counts.
PROGRAM = """
import argparse
from trainshed import report
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_known_args()[0].x
print(f"x is {x}", flush=True)
report.step(3, accuracy=1 - (x - 0.3) ** 2)
"""
X = {"parameterId": "x", "doubleValueSpec": {"minValue": 0.0, "maxValue": 1.0}}
ACCURACY = {"metricId": "accuracy", "goal": "MAXIMIZE"}


def a_tuning_job(
    source: str = PROGRAM, *, trials: int = 3, parallel: int = 3, spec: Any = None, **changes: Any
) -> dict[str, Any]:
    return {
        "displayName": "tune",
        "studySpec": {"metrics": [ACCURACY], "parameters": [X], **(spec or {})},
        "maxTrialCount": trials,
        "parallelTrialCount": parallel,
        "trialJobSpec": {"workerPoolSpecs": [pool(python(source))]},
        **changes,
    }


def tune(server: LiveServer, body: dict[str, Any] | None = None, **changes: Any) -> str:
    """Create a tuning job; the name it was given."""
    return str(server.post(TUNING, body or a_tuning_job(**changes))["name"])


def wait_study(server: LiveServer, name: str, patience: float = PATIENCE) -> Any:
    """The tuning job once it is final."""
    deadline = time.monotonic() + patience
    while (job := server.get(f"/v1/{name}"))["state"] not in FINAL:
        assert time.monotonic() < deadline, f"{name} is {job['state']}: {job.get('trials')}"
        time.sleep(0.1)
    return job


def point_of(trial: Any) -> dict[str, Any]:
    return {row["parameterId"]: row["value"] for row in trial["parameters"]}
