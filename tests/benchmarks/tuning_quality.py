"""How good suggestions are, beside Optuna's: python -m tests.benchmarks.tuning_quality --help.

Runs every function with every method, seed and number of trials at a time, and prints what `tuning_report.py`
says of them. Optuna, cmaes and, for its Gaussian process, torch are no part of any environment of this
repository: a method that cannot be imported is left out. Results that are in the output file already are not
computed again, so a run that its --minutes ended goes on with the next one.
"""

import argparse
import json
import math
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tests.benchmarks.fresh_functions import FRESH
from tests.benchmarks.once_fresh_functions import ONCE_FRESH
from tests.benchmarks.tuning_functions import CHECK, DEVELOP, Instance
from tests.benchmarks.tuning_report import MARKS, whole_report
from trainshed.core.tuning.search_space import (
    Parameter,
    ParameterKind,
    Scale,
    SearchSpace,
    TrialPoint,
    applies,
)
from trainshed.core.tuning.suggestion_port import (
    Algorithm,
    NoiseLevel,
    Objective,
    SuggestionRequest,
    TrialResult,
)

FUNCTIONS = {**DEVELOP, **CHECK, **ONCE_FRESH, **FRESH}
Ask = Callable[[], tuple[object, TrialPoint]]
Tell = Callable[[object, float], None]
Job = tuple[str, str, int, int]  # function, method, seed, trials at a time


def own(space: SearchSpace, seed: int, algorithm: Algorithm) -> tuple[Ask, Tell]:
    from trainshed.suggest.choose import choose

    trials: list[TrialResult] = []

    def ask() -> tuple[object, TrialPoint]:
        request = SuggestionRequest(
            space=space,
            objectives=(Objective("loss"),),
            algorithm=algorithm,
            seed=seed,
            number=len(trials) + 1,
            trials=tuple(trials),
            noise=NoiseLevel.LOW,
        )
        [point] = choose(request)
        trials.append(TrialResult(point=point, is_pending=True))
        return len(trials) - 1, point

    def tell(index: object, value: float) -> None:
        assert isinstance(index, int)
        trials[index] = TrialResult(point=trials[index].point, values=(value,))

    return ask, tell


def optuna_study(space: SearchSpace, seed: int, sampler: str) -> tuple[Ask, Tell]:
    import optuna  # pyright: ignore[reportMissingImports]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers = optuna.samplers
    made = {"tpe": lambda: samplers.TPESampler(seed=seed), "gp": lambda: samplers.GPSampler(seed=seed)}[
        sampler
    ]()
    study = optuna.create_study(sampler=made)

    def ask() -> tuple[object, TrialPoint]:
        trial = study.ask()
        point: dict[str, float | int | str] = {}
        for parameter in space.ordered:
            if not parameter.parent or (
                parameter.parent in point and applies(parameter, point[parameter.parent])
            ):
                point[parameter.id] = _optuna_value(trial, parameter)
        return trial, point

    return ask, study.tell


def _optuna_value(trial, p: Parameter) -> float | int | str:
    log = p.scale is Scale.LOG
    match p.kind:
        case ParameterKind.CATEGORICAL:
            return trial.suggest_categorical(p.id, p.values)
        case ParameterKind.INTEGER:
            return trial.suggest_int(p.id, int(p.low), int(p.high), log=log)
        case ParameterKind.DISCRETE:
            return p.values[trial.suggest_int(p.id, 0, len(p.values) - 1)]
        case _:
            if p.scale is Scale.REVERSE_LOG:  # what a user of Optuna would write
                mirrored = trial.suggest_float(p.id, p.low, p.high, log=True)
                return min(p.high, max(p.low, p.high + p.low - mirrored))
            return trial.suggest_float(p.id, p.low, p.high, log=log)


METHODS: dict[str, Callable[[SearchSpace, int], tuple[Ask, Tell]]] = {
    "own": lambda s, n: own(s, n, Algorithm.DEFAULT),
    "own-tpe": lambda s, n: own(s, n, Algorithm.TPE),
    "own-cma": lambda s, n: own(s, n, Algorithm.CMA_ES),
    "random": lambda s, n: own(s, n, Algorithm.RANDOM),
    "tpe": lambda s, n: optuna_study(s, n, "tpe"),
    "gp": lambda s, n: optuna_study(s, n, "gp"),
}


def run(function: str, method: str, seed: int, parallel: int, trials: int) -> dict:
    """One study. Trials end in the order they began, with `parallel` of them under way."""
    warnings.simplefilter("ignore")
    start = zlib.crc32(function.encode())
    instance: Instance = FUNCTIONS[function](np.random.default_rng([start, seed]))
    noise = np.random.default_rng([start, seed, 1])
    ask, tell = METHODS[method](instance.space, seed)
    under_way: list[tuple[object, TrialPoint]] = []
    seen: list[tuple[float, float]] = []
    asked: list[float] = []

    def end_one() -> None:
        handle, point = under_way.pop(0)
        assert instance.space.contains(point), point
        value = instance.value(point)
        measured = value + instance.noise * float(noise.standard_normal())
        tell(handle, measured)
        seen.append((measured, value - instance.least))

    for _ in range(trials):
        if len(under_way) == parallel:
            end_one()
        began = time.process_time()
        under_way.append(ask())
        asked.append(time.process_time() - began)
    while under_way:
        end_one()
    regrets = {str(m): min(seen[:m])[1] for m in MARKS if m <= trials}
    return {
        "function": function,
        "method": method,
        "seed": seed,
        "parallel": parallel,
        "regret": regrets,
        "ask": float(np.mean(asked[-10:])),
        "ask_most": max(asked),
    }


def key_of(row: dict) -> tuple:
    return row["function"], row["method"], row["seed"], row["parallel"]


def main() -> int:
    parser = argparse.ArgumentParser(description="How good suggestions are, beside Optuna's.")
    parser.add_argument("--functions", default="all", help="develop, check, fresh, all, or names")
    parser.add_argument("--methods", default="own,tpe,gp,random")
    parser.add_argument("--seeds", default="0-19", help="FIRST-LAST")
    parser.add_argument("--gp-seeds", default="", help="those of Optuna's Gaussian process, which is slow")
    parser.add_argument("--parallel", default="1,4")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="no study begins later")
    parser.add_argument("--out", type=Path, default=Path("tuning-quality.jsonl"))
    parser.add_argument("--again", default="", help="methods whose results in the file are computed again")
    parser.add_argument(
        "--ahead", default="", help="the method that is compared with the others; else the first"
    )
    args = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # numpy reads it at its import: begin again
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
        os.execv(sys.executable, [sys.executable, "-m", "tests.benchmarks.tuning_quality", *sys.argv[1:]])
    sets = {"develop": DEVELOP, "check": CHECK | ONCE_FRESH, "fresh": FRESH, "all": FUNCTIONS}
    functions = list(sets[args.functions]) if args.functions in sets else args.functions.split(",")
    methods = args.methods.split(",")
    methods = [method for method in methods if is_there(method)]
    known = {}
    if args.out.exists():
        lines = (json.loads(line) for line in args.out.read_text().splitlines())
        known = {key_of(row): row for row in lines if row["method"] not in args.again.split(",")}
    at_a_time = [int(number) for number in args.parallel.split(",")]
    seeds = {method: numbers(args.seeds) for method in methods} | {"gp": numbers(args.gp_seeds or args.seeds)}
    wanted = [(f, m, s, n) for m in methods for s in seeds[m] for f in functions for n in at_a_time]
    missing = [job for job in wanted if job not in known]
    # Seed by seed, so that a run which ends early has whole ones; what takes longest comes first.
    missing.sort(key=lambda job: (job[2], job[1] != "gp"))
    for row in results(missing, args.trials, args.processes, args.minutes):
        known[key_of(row)] = row
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
    if len(methods) > 1:
        print(whole_report([known[job] for job in wanted if job in known], methods, args.ahead or methods[0]))
    return 0


def is_there(method: str) -> bool:
    needs = {"tpe": "optuna", "gp": "torch"}
    if method in needs and find_spec(needs[method]) is None:
        print(f"{method} is left out: {needs[method]} cannot be imported", file=sys.stderr)
        return False
    return True


def numbers(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def results(jobs: list[Job], trials: int, processes: int, minutes: float) -> Iterator[dict]:
    """Each study as it ends. When the time is up no other begins; those under way are waited for."""
    until = time.monotonic() + 60 * minutes
    left = list(reversed(jobs))
    with ProcessPoolExecutor(processes) as pool:
        running: set[Future[dict]] = set()
        while left or running:
            while left and len(running) < processes:
                function, method, seed, parallel = left.pop()
                running.add(pool.submit(run, function, method, seed, parallel, trials))
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ended)
            if time.monotonic() > until:
                left.clear()


if __name__ == "__main__":
    sys.exit(main())
