"""A study of a program that really trains: the model learns digits, and the study learns how to train it."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_submit import Person
from tests.live import LiveServer

# Seven segments for each digit, blurred by noise: a net of one hidden layer, by stochastic gradients.
PROGRAM = """
import argparse, time
import numpy as np
from trainshed import report

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--momentum", type=float, required=True)
parser.add_argument("--hidden", type=int, required=True)
parser.add_argument("--epochs", type=int, required=True)
options = parser.parse_args()

SEGMENTS = [0b1110111, 0b0010010, 0b1011101, 0b1011011, 0b0111010,
            0b1101011, 0b1101111, 0b1010010, 0b1111111, 0b1111011]
rng = np.random.default_rng(0)
shapes = np.array([[digit >> bit & 1 for bit in range(7)] for digit in SEGMENTS], dtype=float)
shapes = shapes @ rng.normal(size=(7, 49)) / 7**0.5
digits = rng.integers(10, size=1200)
pictures = shapes[digits] + rng.normal(scale=1.0, size=(1200, 49))
train, test = slice(0, 900), slice(900, None)

def forward(x):
    inner = np.tanh(x @ weights[0])
    scores = inner @ weights[1]
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return inner, odds / odds.sum(axis=1, keepdims=True)

weights = [rng.normal(scale=0.1, size=size) for size in ((49, options.hidden), (options.hidden, 10))]
speeds = [np.zeros_like(part) for part in weights]
for epoch in range(1, options.epochs + 1):
    order = rng.permutation(900)
    for batch in np.split(order, 18):
        inner, odds = forward(pictures[train][batch])
        error = (odds - np.eye(10)[digits[train][batch]]) / len(batch)
        back = (error @ weights[1].T) * (1 - inner**2)
        for at, slope in enumerate((pictures[train][batch].T @ back, inner.T @ error)):
            speeds[at] = options.momentum * speeds[at] - options.lr * slope
            weights[at] = weights[at] + speeds[at]
    accuracy = float((forward(pictures[test])[1].argmax(axis=1) == digits[test]).mean())
    report.step(epoch, total=options.epochs, accuracy=accuracy)
    time.sleep(0.1)  # an epoch takes its time: what is bad can be seen before it ends
"""
FIRST = 4  # trials that spread over a space of three parameters, before a model chooses
BEST = 3  # of the later ones
TRIALS = 14
EPOCHS = 40

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "32GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


def test_a_study_that_trains_improves_and_ends_hopeless_trials_early(
    server: LiveServer, tmp_path: Path
) -> None:
    person = Person(server, tmp_path)
    person.write(train__py=PROGRAM)
    done = person(
        *("tune", "train.py", "--machine", "n1-standard-1", "--name", "digits", "--maximize", "accuracy"),
        *("--param", "lr=log:1e-5..1e1", "--param", "momentum=0.0..0.95", "--param", "hidden=2..48"),
        *("--trials", str(TRIALS), "--parallel", "2", "--seed", "3", "--stop-early", "median"),
        *("--", "--epochs", str(EPOCHS)),
        timeout=360,
    )
    assert done.returncode == 0, done.stderr
    trials = json.loads(person("study", "trials", "digits", "--json").stdout)
    trials.sort(key=lambda trial: int(trial["id"]))
    assert [(int(trial["id"]), trial["state"]) for trial in trials] == [
        (number, "SUCCEEDED") for number in range(1, TRIALS + 1)
    ]
    reached = [float(trial["value"]) for trial in trials]
    first = statistics.median(reached[:FIRST])
    # Those that are stopped early say nothing of what they would have reached.
    assert statistics.mean(sorted(reached[FIRST:])[-BEST:]) > first, reached
    steps = [int(trial["finalMeasurement"]["stepCount"]) for trial in trials]
    stopped = sum(step < EPOCHS for step in steps)
    # One that is told to stop while it ends has all of its steps.
    assert 0 < stopped <= done.stdout.count("stopped early: "), done.stdout
    assert max(reached) > 0.7  # of ten digits
