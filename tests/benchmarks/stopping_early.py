"""What early stopping saves on real learning curves: seconds of trials, beside the best value that is found.

Each study runs whole and with a rule, over the same points, for several seeds. A trial is timed from its
start to its end. The start of its interpreter and its imports count, and no rule can save them: so each study
runs with warm starts too, which have none.
"""

import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

from tests.benchmarks.reducing import await_warmth
from tests.benchmarks.row import Row
from tests.benchmarks.searching import FLAGS, searched
from tests.live import LiveServer

TRAINING = Path(__file__).parents[2] / ".venv-train" / "bin" / "python"
SEEDS = (1, 2, 3)
TRIALS, AT_ONCE, EPOCHS = 16, 4, 45
NOISE = 0.0066  # the standard error of an accuracy of 98 % on 450 digits
DATA = f"""
import os, sys
os.environ["OMP_NUM_THREADS"] = "1"
given = dict(word[2:].split("=") for word in sys.argv[1:])
epochs, rate = range(1, {EPOCHS} + 1), float(given["lr"])
def tell(epoch, accuracy): print(f"epoch={{epoch}} accuracy={{accuracy}}", flush=True)
"""
DIGITS = """
import warnings
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
warnings.simplefilter("ignore")
x, y = load_digits(return_X_y=True)
x, vx, y, vy = train_test_split(x / 16, y, random_state=0)
layer, decay = (int(given["width"]),), float(given["decay"])
model = MLPClassifier(layer, learning_rate_init=rate, alpha=decay, batch_size=8, random_state=0)
for epoch in epochs:
    model.partial_fit(x, y, classes=range(10))
    tell(epoch, model.score(vx, vy))
"""
# The digits are read as they lie, and steps are taken by hand: to import scikit-learn, or the compiler that
# comes with `torch.optim`, takes longer than such a trial trains.
CNN = """
from importlib.util import find_spec
import numpy, torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
place = find_spec("sklearn").submodule_search_locations[0] + "/datasets/data/digits.csv.gz"
rows = torch.tensor(numpy.loadtxt(place, delimiter=",", dtype="float32"))[torch.randperm(1797)]
x, y = rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()
x, vx, y, vy = x[450:], x[:450], y[450:], y[:450]
width, drop = int(given["width"]), float(given["dropout"])
model = nn.Sequential(
    nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(drop), nn.Linear(8 * width, 10),
)
weights = [(weight, torch.zeros_like(weight)) for weight in model.parameters()]
for epoch in epochs:
    model.train()
    for some in torch.randperm(len(x)).split(64):
        nn.functional.cross_entropy(model(x[some]), y[some]).backward()
        with torch.no_grad():
            for weight, speed in weights:
                weight -= rate * speed.mul_(0.9).add_(weight.grad)
                weight.grad = None
    model.eval()
    with torch.no_grad():
        tell(epoch, (model(vx).argmax(1) == vy).float().mean().item())
"""
RATE = {"parameterId": "lr", "scaleType": "UNIT_LOG_SCALE"}
NETWORK = [
    {**RATE, "doubleValueSpec": {"minValue": 1e-4, "maxValue": 0.3}},
    {
        "parameterId": "decay",
        "doubleValueSpec": {"minValue": 1e-6, "maxValue": 1},
        "scaleType": "UNIT_LOG_SCALE",
    },
    {"parameterId": "width", "integerValueSpec": {"minValue": 4, "maxValue": 64}},
]
FILTERS = [
    {**RATE, "doubleValueSpec": {"minValue": 1e-4, "maxValue": 1}},
    {"parameterId": "dropout", "doubleValueSpec": {"minValue": 0, "maxValue": 0.8}},
    {"parameterId": "width", "integerValueSpec": {"minValue": 1, "maxValue": 8}},
]
IMPORTS = {
    "digits": "sklearn.datasets,sklearn.model_selection,sklearn.neural_network",
    "a small CNN": "torch",
}
# For the server: an interpreter whose imports leave threads is never forked.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PROGRAMS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "digits": (DATA + DIGITS, NETWORK),
    "a small CNN": (DATA + CNN, FILTERS),
}
ASHA = {"ashaStoppingSpec": {"maxStepCount": EPOCHS}}
OTHERS = {  # printed beside it, of one seed
    "median": {"medianAutomatedStoppingSpec": {}},
    "decay curve": {"decayCurveStoppingSpec": {}},
}


@dataclass(frozen=True, slots=True)
class Search:
    """What a study took and found."""

    seconds: float
    epochs: int
    best: float


def early_stops() -> list[Row]:
    return [row for warm in (False, True) for name in PROGRAMS for row in _rows(name, warm=warm)]


def _rows(name: str, *, warm: bool) -> list[Row]:
    flags = (*FLAGS, "--warm", f"{TRAINING}={IMPORTS[name]}") if warm else FLAGS
    with LiveServer(*flags, env=ONE_THREAD) as server:
        if warm:
            await_warmth(server)
        whole = [_search(server, name, seed, {}) for seed in SEEDS]
        stopped = [_search(server, name, seed, ASHA) for seed in SEEDS]
        for rule, spec in OTHERS.items():
            others = [_search(server, name, SEEDS[0], spec)]
            print(f"  {name}, {rule}: {_compared(whole[:1], others)}", file=sys.stderr)
    print(f"  {name}, ASHA: {_compared(whole, stopped)}", file=sys.stderr)
    lost = mean(before.best - after.best for before, after in zip(whole, stopped, strict=True))
    name += ", warm" if warm else ""
    return [
        Row(
            what=f"seconds of trials that ASHA saves, {name}",
            floor=f"{sum(search.seconds for search in whole):.0f} s",
            ours=f"{sum(search.seconds for search in stopped):.0f} s",
            value=mean(_saved(whole, stopped)),
            goal=40,
            unit="%",
            at_least=True,
        ),
        Row(
            what=f"accuracy that it loses, {name}",
            floor=f"best {mean(search.best for search in whole):.4f}",
            ours=f"best {mean(search.best for search in stopped):.4f}",
            value=lost * 100,
            goal=NOISE * 100,
            unit="points",
        ),
    ]


def _search(server: LiveServer, name: str, seed: int, rule: dict[str, Any]) -> Search:
    program, parameters = PROGRAMS[name]
    study = searched(
        server,
        program,
        trials=TRIALS,
        parallel=AT_ONCE,
        python=TRAINING,
        parameters=parameters,
        seed=seed,
        # Points that do not depend on what was measured: the same ones with and without the rule.
        extra={"algorithm": "RANDOM_SEARCH", **rule},
    )
    trials = study["trials"]
    return Search(
        sum(_seconds(trial) for trial in trials),
        sum(int(trial["measurements"][-1]["stepCount"]) for trial in trials if "measurements" in trial),
        max(
            trial["finalMeasurement"]["metrics"][0]["value"]
            for trial in trials
            if "finalMeasurement" in trial
        ),
    )


def _seconds(trial: Any) -> float:
    began, ended = (datetime.fromisoformat(trial[name]) for name in ("startTime", "endTime"))
    return (ended - began).total_seconds()


def _saved(whole: list[Search], stopped: list[Search]) -> list[float]:
    """Per cent of the seconds, for each seed."""
    return [100 * (1 - after.seconds / before.seconds) for before, after in zip(whole, stopped, strict=True)]


def _compared(whole: list[Search], stopped: list[Search]) -> str:
    saved = _saved(whole, stopped)
    pairs = list(zip(whole, stopped, strict=True))
    epochs = [100 * (1 - after.epochs / before.epochs) for before, after in pairs]
    lost = [before.best - after.best for before, after in pairs]
    best = ", ".join(f"{before.best:.4f} -> {after.best:.4f}" for before, after in pairs)
    return (
        f"{mean(saved):.0f} % of the seconds saved (+- {pstdev(saved):.0f}), "
        f"{mean(epochs):.0f} % of the epochs (+- {pstdev(epochs):.0f}); "
        f"best {best}: {mean(lost):+.4f} lost (+- {pstdev(lost):.4f})"
    )
