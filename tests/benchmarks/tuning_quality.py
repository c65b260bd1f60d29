"""How good suggestions are, beside Optuna's: python -m tests.benchmarks.tuning_quality --help.

Runs every function with every method, seed and number of trials at a time, and prints mean ranks, Wilcoxon's
p, the worst ratio of medians and the time of an ask. Optuna, cmaes and torch must be importable: they are no
part of any environment of this repository. Results that are in the output file already are not computed
again.
"""

import argparse
import json
import os
import sys
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.fresh_functions import FRESH
from tests.benchmarks.tuning_functions import CHECK, DEVELOP, Instance
from trainshed.core.search_space import Parameter, ParameterKind, Scale, SearchSpace, TrialPoint, applies
from trainshed.core.suggestion_port import Algorithm, NoiseLevel, Objective, SuggestionRequest, TrialResult

FUNCTIONS = {**DEVELOP, **CHECK, **FRESH}
MARKS = (20, 50, 100)
Ask = Callable[[], tuple[object, TrialPoint]]
Tell = Callable[[object, float], None]


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


def run(function: str, method: str, seed: int, parallel: int, trials: int) -> dict[str, object]:
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


def report(rows: Iterable[dict], methods: list[str], ahead: str) -> str:
    from scipy.stats import rankdata, wilcoxon

    cells: dict[tuple, dict[str, dict]] = defaultdict(dict)
    for row in rows:
        cells[row["function"], row["seed"], row["parallel"]][row["method"]] = row
    whole = {k: v for k, v in cells.items() if all(m in v for m in methods)}
    lines = [
        f"{len(whole)} paired studies of {len({k[0] for k in whole})} functions; methods {', '.join(methods)}"
    ]
    for mark in map(str, MARKS):
        some = {k: v for k, v in whole.items() if all(mark in v[m]["regret"] for m in methods)}
        if not some:
            continue
        table = np.array([[max(v[m]["regret"][mark], 1e-9) for m in methods] for v in some.values()])
        ranks = np.array([rankdata(row) for row in table])
        lines.append(
            f"after {mark}: mean rank "
            + "  ".join(f"{m} {r:.2f}" for m, r in zip(methods, ranks.mean(0), strict=True))
        )
        first = methods.index(ahead)
        for index, other in enumerate(methods):
            if other != ahead:
                gaps = ranks[:, first] - ranks[:, index]
                result: Any = wilcoxon(gaps, alternative="less") if np.any(gaps) else None
                p = result.pvalue if result is not None else 1.0
                wins = float((table[:, first] < table[:, index]).mean())
                lines.append(f"    ahead of {other}: p = {p:.2g}, better in {wins:.0%}")
    lines += _medians(whole, methods, ahead)
    for method in methods:
        times = [v[method]["ask"] for v in whole.values()]
        if times:
            most = max(v[method]["ask_most"] for v in whole.values())
            middle = float(np.median(times))
            lines.append(
                f"CPU of the last asks of {method}: median {1e3 * middle:.0f} ms, most {1e3 * most:.0f} ms"
            )
    return "\n".join(lines)


def _medians(whole: dict, methods: list[str], ahead: str) -> list[str]:
    lines = [
        "median regret by function, trials at a time and mark; * where the best other is more than 2x better"
    ]
    for function, parallel in sorted({(k[0], k[2]) for k in whole}):
        parts = []
        for mark in map(str, MARKS):
            group = [
                v
                for k, v in whole.items()
                if (k[0], k[2]) == (function, parallel) and mark in v[methods[0]]["regret"]
            ]
            if not group:
                continue
            middle = {m: float(np.median([v[m]["regret"][mark] for v in group])) for m in methods}
            ratio = max(middle[ahead], 1e-9) / max(min(v for m, v in middle.items() if m != ahead), 1e-9)
            parts.append(
                " ".join(f"{middle[m]:8.2g}" for m in methods) + (f" *{ratio:.1f}" if ratio > 2 else "")
            )
        lines.append(f"  {function:20} {parallel}: " + " | ".join(parts))
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="How good suggestions are, beside Optuna's.")
    parser.add_argument("--functions", default="all", help="develop, check, all, or names")
    parser.add_argument("--methods", default="own,tpe,gp,random")
    parser.add_argument("--seeds", default="0-19", help="FIRST-LAST")
    parser.add_argument("--parallel", default="1,4")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("tuning-quality.jsonl"))
    parser.add_argument("--again", default="", help="methods whose results in the file are computed again")
    parser.add_argument(
        "--ahead", default="", help="the method that is compared with the others; else the first"
    )
    args = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # numpy reads it at its import: begin again
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
        os.execv(sys.executable, [sys.executable, "-m", "tests.benchmarks.tuning_quality", *sys.argv[1:]])
    sets = {"develop": DEVELOP, "check": CHECK, "fresh": FRESH, "all": FUNCTIONS}
    functions = list(sets[args.functions]) if args.functions in sets else args.functions.split(",")
    methods = args.methods.split(",")
    first, _, last = args.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    known = {}
    if args.out.exists():
        lines = (json.loads(line) for line in args.out.read_text().splitlines())
        known = {key_of(row): row for row in lines if row["method"] not in args.again.split(",")}
    at_a_time = [int(number) for number in args.parallel.split(",")]
    wanted = [(f, m, s, n) for f in functions for m in methods for s in seeds for n in at_a_time]
    missing = [job for job in wanted if job not in known]
    missing.sort(key=lambda job: job[1] != "gp")  # what takes longest comes first
    with ProcessPoolExecutor(args.processes) as pool, args.out.open("a") as file:
        futures = [pool.submit(run, f, m, s, at_once, args.trials) for f, m, s, at_once in missing]
        for future in as_completed(futures):
            row = future.result()
            known[key_of(row)] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
    if len(methods) > 1:
        print(report([known[job] for job in wanted], methods, args.ahead or methods[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
