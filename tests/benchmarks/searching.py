"""Studies: how fast trials follow each other."""

import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.row import Row, ms
from tests.live import LiveServer, pool

STUDIES = "/v1/projects/p1/locations/us-central1/hyperparameterTuningJobs"
FLAGS = ("--engine", "none", "--cpus", "64", "--memory", "512GiB")
INSTANT, AT_ONCE = 200, 4
KNOWN, LATER = 100, 10  # trials that are done before those that are measured
PEAK = "import sys; x = float(sys.argv[-1].partition('=')[2]); print(f'score={-(x - 0.3) ** 2}')"
STAMPED = f"import time; print(time.time_ns(), flush=True); {PEAK}; print(time.time_ns(), flush=True)"
LINE = [{"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}]
BARE = "import time; print(time.time_ns(), flush=True)"


def one_after_another() -> list[Row]:
    """From the last line of a trial to the first of the next, and many trials that do nothing."""
    with LiveServer(*FLAGS) as server:
        bare = [_bare() for _ in range(LATER)]
        slow = searched(server, STAMPED, trials=KNOWN + LATER, parallel=1)
        spans = [_span(server, trial["customJob"]) for trial in slow["trials"][KNOWN - 1 :]]
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(spans)]
        began = time.monotonic()
        searched(server, PEAK, trials=INSTANT, parallel=AT_ONCE)
        pace = INSTANT / (time.monotonic() - began)
    extra = (median(gaps) - median(bare)) * 1e3
    return [
        Row(
            what=f"trial end -> next trial's first line, {KNOWN} trials done",
            floor=ms(bare),
            ours=ms(gaps),
            value=extra,
            goal=400,
            unit="ms more",
        ),
        Row(
            what=f"{INSTANT} instant trials, {AT_ONCE} at a time",
            floor="-",
            ours=f"{pace:.1f} trials/s",
            value=pace,
            goal=5,
            unit="trials/s",
            at_least=True,
        ),
    ]


def searched(
    server: LiveServer,
    program: str,
    *,
    trials: int,
    parallel: int,
    python: Path | str = sys.executable,
    parameters: object = None,
    seed: int = 7,
    extra: dict[str, Any] | None = None,
) -> Any:
    """The study once it has ended."""
    metric = "score" if parameters is None else "accuracy"
    body = {
        "displayName": "search",
        "seed": seed,
        "maxTrialCount": trials,
        "parallelTrialCount": parallel,
        "studySpec": {
            "metrics": [{"metricId": metric, "goal": "MAXIMIZE"}],
            "parameters": parameters or LINE,
            **(extra or {}),
        },
        "trialJobSpec": {"workerPoolSpecs": [pool([str(python), "-c", program], machine="n1-standard-1")]},
    }
    name = server.post(STUDIES, body)["name"]
    while True:
        study = server.get(f"/v1/{name}", view="trainshed")
        if study["state"] in ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED"):
            assert study["state"] == "JOB_STATE_SUCCEEDED", study
            return server.get(f"/v1/{name}")
        time.sleep(0.2)


def _bare() -> float:
    began = time.time_ns()
    printed = subprocess.run([sys.executable, "-c", BARE], stdout=subprocess.PIPE, check=True).stdout
    return (int(printed) - began) / 1e9


def _span(server: LiveServer, job: str) -> tuple[float, float]:
    """The times of its first and its last line."""
    stamps = [int(line["text"]) / 1e9 for line in server.lines(job) if line["text"].isdigit()]
    return stamps[0], stamps[-1]
