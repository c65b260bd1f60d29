"""Studies: how fast trials follow each other, and what early stopping saves."""

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
TRAINING = Path(__file__).parents[2] / ".venv-train" / "bin" / "python"
FLAGS = ("--engine", "none", "--cpus", "64", "--memory", "512GiB")
INSTANT, AT_ONCE = 200, 4
KNOWN, LATER = 100, 10  # trials that are done before those that are measured
PEAK = "import sys; x = float(sys.argv[-1].partition('=')[2]); print(f'score={-(x - 0.3) ** 2}')"
STAMPED = f"import time; print(time.time_ns(), flush=True); {PEAK}; print(time.time_ns(), flush=True)"
BARE = "import time; print(time.time_ns(), flush=True)"
# A real learning curve: a small network on handwritten digits, an epoch at a time.
DIGITS = """
import sys, warnings
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
warnings.simplefilter("ignore")
given = dict(word[2:].split("=") for word in sys.argv[1:])
x, y = load_digits(return_X_y=True)
x, vx, y, vy = train_test_split(x / 16, y, random_state=0)
rate, decay = float(given["lr"]), float(given["decay"])
model = MLPClassifier((int(given["width"]),), learning_rate_init=rate, alpha=decay, random_state=0)
for epoch in range(1, 41):
    model.partial_fit(x, y, classes=range(10))
    print(f"epoch={epoch} accuracy={model.score(vx, vy)}", flush=True)
"""


def one_after_another() -> list[Row]:
    """From the last line of a trial to the first of the next, and many trials that do nothing."""
    with LiveServer(*FLAGS) as server:
        bare = [_bare() for _ in range(LATER)]
        slow = _searched(server, STAMPED, trials=KNOWN + LATER, parallel=1)
        spans = [_span(server, trial["customJob"]) for trial in slow["trials"][KNOWN - 1 :]]
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(spans)]
        began = time.monotonic()
        _searched(server, PEAK, trials=INSTANT, parallel=AT_ONCE)
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


def early_stops() -> list[Row]:
    """The same study twice, once with ASHA: the time of its trials, and the best that each found."""
    asha = {"ashaStoppingSpec": {"maxStepCount": 40, "minStepCount": 3, "reductionFactor": 3}}
    with LiveServer(*FLAGS) as server:
        whole = _searched(server, DIGITS, trials=20, parallel=2, python=TRAINING, parameters=NETWORK)
        stopped = _searched(
            server, DIGITS, trials=20, parallel=2, python=TRAINING, parameters=NETWORK, extra=asha
        )
    saved = 100 * (1 - _epochs(stopped) / _epochs(whole))
    return [
        Row(
            what="epochs of trials that ASHA saves, digits",
            floor=f"{_epochs(whole)} epochs, best {_best(whole):.4f}",
            ours=f"{_epochs(stopped)} epochs, best {_best(stopped):.4f}",
            value=saved,
            goal=40,
            unit="%",
            at_least=True,
        )
    ]


NETWORK = [
    {
        "parameterId": "lr",
        "doubleValueSpec": {"minValue": 1e-4, "maxValue": 0.3},
        "scaleType": "UNIT_LOG_SCALE",
    },
    {
        "parameterId": "decay",
        "doubleValueSpec": {"minValue": 1e-6, "maxValue": 1},
        "scaleType": "UNIT_LOG_SCALE",
    },
    {"parameterId": "width", "integerValueSpec": {"minValue": 4, "maxValue": 64}},
]
LINE = [{"parameterId": "x", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}]


def _searched(
    server: LiveServer,
    program: str,
    *,
    trials: int,
    parallel: int,
    python: Path | str = sys.executable,
    parameters: object = None,
    extra: dict[str, Any] | None = None,
) -> Any:
    """The study once it has ended."""
    metric = "score" if parameters is None else "accuracy"
    body = {
        "displayName": "search",
        "seed": 7,
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


def _epochs(study: Any) -> int:
    return sum(
        int(trial["measurements"][-1]["stepCount"]) for trial in study["trials"] if "measurements" in trial
    )


def _best(study: Any) -> float:
    return max(
        trial["finalMeasurement"]["metrics"][0]["value"]
        for trial in study["trials"]
        if "finalMeasurement" in trial
    )
