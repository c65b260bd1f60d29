"""Functions to tune, many unlike each other: each makes an instance from a seed, with its least value known.

`tuning_quality.py` calls them. Develop with DEVELOP, then check with CHECK: what holds on both may
generalise. Whether it does, those of `fresh_functions.py` tell.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace, TrialPoint

Floats = np.ndarray
DOUBLE, INTEGER = ParameterKind.DOUBLE, ParameterKind.INTEGER
CATEGORICAL, DISCRETE = ParameterKind.CATEGORICAL, ParameterKind.DISCRETE


@dataclass(frozen=True)
class Instance:
    """A function of one seed: its space, its value without noise, and the deviation of its noise."""

    space: SearchSpace
    value: Callable[[TrialPoint], float]
    least: float = 0.0
    noise: float = 0.0


Make = Callable[[np.random.Generator], Instance]


def cube(width: int, low: float = -5.0, high: float = 5.0) -> SearchSpace:
    return SearchSpace(tuple(Parameter(id=f"x{i}", kind=DOUBLE, low=low, high=high) for i in range(width)))


def vector(point: TrialPoint) -> Floats:
    return np.array([float(point[f"x{i}"]) for i in range(len(point))])


def rotation(rng: np.random.Generator, width: int) -> Floats:
    q, _ = np.linalg.qr(rng.standard_normal((width, width)))
    return q


def _smooth(width: int, shape: Callable[[Floats], float], rotate: bool = False, noise: float = 0.0) -> Make:
    """A function of known least value 0 at 0, shifted into the cube and perhaps rotated."""

    def make(rng: np.random.Generator) -> Instance:
        shift = rng.uniform(-3.5, 3.5, width)
        turn = rotation(rng, width) if rotate else np.eye(width)
        return Instance(cube(width), lambda p: float(shape(turn @ (vector(p) - shift))), noise=noise)

    return make


def _sphere(z: Floats) -> float:
    return float(z @ z)


def _ellipsoid(z: Floats) -> float:
    return float((10.0 ** (4.0 * np.arange(len(z)) / (len(z) - 1)) * z * z).sum())


def _rastrigin(z: Floats) -> float:
    return float((z * z + 10.0 * (1.0 - np.cos(2.0 * math.pi * z))).sum())


def _rosenbrock(z: Floats) -> float:
    x = z * 0.4 + 1.0
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())


def _ackley(z: Floats) -> float:
    return float(
        -20.0 * math.exp(-0.2 * math.sqrt((z @ z) / len(z)))
        - math.exp(np.cos(2.0 * math.pi * z).mean())
        + 20.0
        + math.e
    )


def _levy(z: Floats) -> float:
    w = 1.0 + z / 4.0
    middle = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)).sum()
    edge = (w[-1] - 1) ** 2 * (1 + np.sin(2 * math.pi * w[-1]) ** 2)
    return float(np.sin(math.pi * w[0]) ** 2 + middle + edge)


def _sharp_ridge(z: Floats) -> float:
    return float(z[0] ** 2 + 20.0 * math.sqrt(float(z[1:] @ z[1:])))


def _griewank(z: Floats) -> float:
    root = np.sqrt(np.arange(1, len(z) + 1))
    return float(1.0 + (z @ z) / 40.0 - np.prod(np.cos(2.0 * z / root)))


def _steps(z: Floats) -> float:
    return float((np.floor(np.abs(z) * 1.5) ** 2).sum() + 0.01 * np.abs(z).sum())


def _goldstein(x: Floats) -> float:
    a, b = x
    first = 19 - 14 * a + 3 * a * a - 14 * b + 6 * a * b + 3 * b * b
    second = 18 - 32 * a + 12 * a * a + 48 * b - 36 * a * b + 27 * b * b
    return float((1 + (a + b + 1) ** 2 * first) * (30 + (2 * a - 3 * b) ** 2 * second))


def mirrored(width: int, low: float, high: float, shape: Callable[[Floats], float], least: float) -> Make:
    """A function whose coordinates an instance swaps and mirrors: its optimum is elsewhere for each seed."""

    def make(rng: np.random.Generator) -> Instance:
        order, flipped = rng.permutation(width), rng.random(width) < 0.5

        def value(p: TrialPoint) -> float:
            x = vector(p)
            return float(shape(np.where(flipped, low + high - x, x)[order]))

        return Instance(cube(width, low, high), value, least)

    return make


def branin(_: np.random.Generator) -> Instance:
    space = SearchSpace(
        (
            Parameter(id="x0", kind=DOUBLE, low=-5, high=10),
            Parameter(id="x1", kind=DOUBLE, low=0, high=15),
        )
    )

    def value(p: TrialPoint) -> float:
        x, y = vector(p)
        bowl = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
        return float(bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)

    return Instance(space, value, 0.397887357729739)


_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_A6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_A3 = np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_P3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])


def _hartmann(a: Floats, centre: Floats, least: float, noise: float = 0.0) -> Make:
    def value(p: TrialPoint) -> float:
        x = vector(p)
        return -float((_ALPHA * np.exp(-(a * (x - centre) ** 2).sum(1))).sum())

    return lambda _: Instance(cube(a.shape[1], 0.0, 1.0), value, least, noise)


def learning_rates(rng: np.random.Generator) -> Instance:
    """Loss of a network over log, reverse-log, integer, discrete and categorical parameters."""
    space = SearchSpace(
        (
            Parameter(id="lr", kind=DOUBLE, low=1e-5, high=1.0, scale=Scale.LOG),
            Parameter(id="decay", kind=DOUBLE, low=1e-7, high=1e-1, scale=Scale.LOG),
            Parameter(id="momentum", kind=DOUBLE, low=0.1, high=0.999, scale=Scale.REVERSE_LOG),
            Parameter(id="layers", kind=INTEGER, low=1, high=8),
            Parameter(id="units", kind=INTEGER, low=16, high=1024, scale=Scale.LOG),
            Parameter(id="batch", kind=DISCRETE, values=(16.0, 32.0, 64.0, 128.0, 256.0), scale=Scale.LOG),
            Parameter(id="act", kind=CATEGORICAL, values=("relu", "tanh", "gelu", "elu")),
        )
    )
    lr0, wd0, mo0 = rng.uniform(-3.5, -1.5), rng.uniform(-5.5, -2.5), rng.uniform(-2.3, -0.6)
    layers0, units0 = int(rng.integers(2, 7)), rng.uniform(5.5, 8.5)
    offsets = rng.permutation([0.0, 0.03, 0.06, 0.15])
    gain = rng.uniform(0.05, 0.25)

    def value(p: TrialPoint) -> float:
        a = ["relu", "tanh", "gelu", "elu"].index(str(p["act"]))
        lr = math.log10(float(p["lr"])) - lr0 - gain * (math.log2(float(p["batch"])) - 6) - 0.1 * a
        diverged = 1.0 / (1.0 + math.exp(-6.0 * (lr - 1.0)))
        width = 0.02 * (math.log2(float(p["units"])) - units0) ** 2
        depth = 0.02 * (int(p["layers"]) - layers0) ** 2
        wd = 0.015 * (math.log10(float(p["decay"])) - wd0 + 0.2 * (int(p["layers"]) - layers0)) ** 2
        mo = 0.05 * (math.log10(1.001 - float(p["momentum"])) - mo0 + 0.3 * lr) ** 2
        small = 0.01 * abs(math.log2(float(p["batch"])) - 6)
        return 0.08 * min(lr * lr, 9.0) + diverged + width + depth + wd + mo + offsets[a] + small

    # The rest reaches 0 but for rounding of units, which is small.
    return Instance(space, value)


def svm_valley(rng: np.random.Generator) -> Instance:
    """Error of a kernel machine: a curved valley in log C and log gamma, flat far away."""
    space = SearchSpace(
        (
            Parameter(id="c", kind=DOUBLE, low=1e-4, high=1e4, scale=Scale.LOG),
            Parameter(id="gamma", kind=DOUBLE, low=1e-6, high=1e2, scale=Scale.LOG),
            Parameter(id="degree", kind=INTEGER, low=1, high=6),
            Parameter(id="shrink", kind=CATEGORICAL, values=("yes", "no")),
        )
    )
    c0, g0, d0 = rng.uniform(-2, 2), rng.uniform(-4, 0), int(rng.integers(1, 7))
    better = str(rng.choice(["yes", "no"]))

    def value(p: TrialPoint) -> float:
        c, g = math.log10(float(p["c"])) - c0, math.log10(float(p["gamma"])) - g0
        along, across = 0.1 * (c - g) ** 2, (c + g + 0.15 * c * c) ** 2
        bad = 1.0 - math.exp(-0.5 * (along + across))
        return bad + 0.03 * abs(int(p["degree"]) - d0) + (0.0 if p["shrink"] == better else 0.02)

    return Instance(space, value)


def models_tree(rng: np.random.Generator) -> Instance:
    """One of three models, each with parameters of its own; the best model differs by instance."""
    space = SearchSpace(
        (
            Parameter(id="model", kind=CATEGORICAL, values=("linear", "trees", "net")),
            Parameter(
                id="l2",
                kind=DOUBLE,
                low=1e-6,
                high=10.0,
                scale=Scale.LOG,
                parent="model",
                parent_values=("linear",),
            ),
            Parameter(id="depth", kind=INTEGER, low=1, high=16, parent="model", parent_values=("trees",)),
            Parameter(
                id="eta",
                kind=DOUBLE,
                low=1e-3,
                high=1.0,
                scale=Scale.LOG,
                parent="model",
                parent_values=("trees", "net"),
            ),
            Parameter(id="sample", kind=DOUBLE, low=0.2, high=1.0, parent="model", parent_values=("trees",)),
            Parameter(
                id="hidden",
                kind=INTEGER,
                low=8,
                high=512,
                scale=Scale.LOG,
                parent="model",
                parent_values=("net",),
            ),
            Parameter(id="drop", kind=DOUBLE, low=0.0, high=0.8, parent="model", parent_values=("net",)),
        )
    )
    base: dict[str, float] = dict(
        zip(("linear", "trees", "net"), rng.permutation([0.0, 0.05, 0.15]), strict=True)
    )
    at = rng.uniform(0.2, 0.8, 6)

    def value(p: TrialPoint) -> float:
        model = str(p["model"])
        if model == "linear":
            return base[model] + 0.3 * ((math.log10(float(p["l2"])) + 6) / 7 - at[0]) ** 2
        eta = (math.log10(float(p["eta"])) + 3) / 3
        if model == "trees":
            depth = (int(p["depth"]) - round(1 + 15 * at[1])) / 15
            return (
                base[model]
                + 0.8 * depth**2
                + 0.5 * (eta - at[2] + 0.4 * depth) ** 2
                + 0.2 * (float(p["sample"]) - 0.2 - 0.8 * at[3]) ** 2
            )
        hidden = (math.log2(int(p["hidden"])) - 3) / 6 - at[4]
        return (
            base[model]
            + 0.3 * hidden**2
            + 1.2 * (eta - at[2]) ** 2
            + 0.4 * (float(p["drop"]) - 0.7 * at[5] - 0.3 * hidden) ** 2
        )

    return Instance(space, value)


def optimizers_tree(rng: np.random.Generator) -> Instance:
    """Two levels of conditions: an optimizer, its parameters, and a schedule with its own."""
    space = SearchSpace(
        (
            Parameter(id="opt", kind=CATEGORICAL, values=("sgd", "adam", "lion")),
            Parameter(id="lr", kind=DOUBLE, low=1e-5, high=1.0, scale=Scale.LOG),
            Parameter(
                id="nesterov", kind=CATEGORICAL, values=("on", "off"), parent="opt", parent_values=("sgd",)
            ),
            Parameter(
                id="momentum",
                kind=DOUBLE,
                low=0.5,
                high=0.999,
                scale=Scale.REVERSE_LOG,
                parent="nesterov",
                parent_values=("on",),
            ),
            Parameter(
                id="beta",
                kind=DOUBLE,
                low=0.8,
                high=0.9999,
                scale=Scale.REVERSE_LOG,
                parent="opt",
                parent_values=("adam", "lion"),
            ),
            Parameter(id="schedule", kind=CATEGORICAL, values=("flat", "cosine", "steps")),
            Parameter(id="warm", kind=INTEGER, low=0, high=20, parent="schedule", parent_values=("cosine",)),
            Parameter(
                id="drops",
                kind=DISCRETE,
                values=(1.0, 2.0, 3.0, 5.0, 8.0),
                parent="schedule",
                parent_values=("steps",),
            ),
        )
    )
    base = rng.permutation([0.0, 0.04, 0.1])
    lr0 = rng.uniform(-3.5, -1.0, 3)
    warm0, drops0 = int(rng.integers(2, 18)), float(rng.choice([2.0, 3.0, 5.0]))
    plan = rng.permutation([0.0, 0.05, 0.12])
    mom = rng.uniform(-2.5, -0.6)

    def value(p: TrialPoint) -> float:
        which = ["sgd", "adam", "lion"].index(str(p["opt"]))
        loss = base[which] + 0.06 * (math.log10(float(p["lr"])) - lr0[which]) ** 2
        if p["opt"] == "sgd":
            loss += (
                0.05
                if p["nesterov"] == "off"
                else 0.04 * (math.log10(1.001 - float(p["momentum"])) - mom) ** 2
            )
        else:
            loss += 0.03 * (math.log10(1.00005 - float(p["beta"])) - mom) ** 2
        if p["schedule"] == "cosine":
            return loss + plan[0] + 0.0008 * (int(p["warm"]) - warm0) ** 2
        if p["schedule"] == "steps":
            return loss + plan[1] + 0.02 * abs(float(p["drops"]) - drops0)
        return loss + plan[2]

    return Instance(space, value)


def categories(rng: np.random.Generator) -> Instance:
    """Six categories with effects of their own and of pairs; two numbers whose best place depends on one."""
    sizes = (3, 5, 2, 4, 3, 6)
    space = SearchSpace(
        (
            *(
                Parameter(id=f"c{i}", kind=CATEGORICAL, values=tuple(f"v{j}" for j in range(n)))
                for i, n in enumerate(sizes)
            ),
            Parameter(id="x0", kind=DOUBLE, low=0.0, high=1.0),
            Parameter(id="x1", kind=DOUBLE, low=0.0, high=1.0),
        )
    )
    single = [rng.exponential(0.3, n) for n in sizes]
    pair = rng.exponential(0.15, (sizes[0], sizes[1]))
    at = rng.uniform(0.1, 0.9, (sizes[2], 2))

    def table(c: list[int]) -> float:
        return float(sum(effect[k] for effect, k in zip(single, c, strict=True)) + pair[c[0], c[1]])

    least = float((single[0][:, None] + single[1][None, :] + pair).min()) + float(
        sum(e.min() for e in single[2:])
    )

    def value(p: TrialPoint) -> float:
        c = [int(str(p[f"c{i}"])[1:]) for i in range(6)]
        gap = np.array([float(p["x0"]), float(p["x1"])]) - at[c[2]]
        return table(c) + 2.0 * float(gap @ gap)

    return Instance(space, value, least)


def mixed_noisy(rng: np.random.Generator) -> Instance:
    return Instance(**{**learning_rates(rng).__dict__, "noise": 0.03})


def integers(rng: np.random.Generator) -> Instance:
    """Whole numbers of different ranges, rotated: no coordinate can be set alone."""
    highs = (10, 30, 100, 7, 50)
    space = SearchSpace(
        tuple(Parameter(id=f"x{i}", kind=INTEGER, low=0, high=h) for i, h in enumerate(highs))
    )
    best = np.array([int(rng.integers(1, h)) for h in highs], dtype=float)
    turn = rotation(rng, 5)
    stretch = np.array([1.0, 2.0, 4.0, 8.0, 16.0])

    def value(p: TrialPoint) -> float:
        z = turn @ ((vector(p) - best) / np.array(highs))
        return float((stretch * z * z).sum() + 0.1 * np.abs(z).sum())

    return Instance(space, value)


def forest_table(rng: np.random.Generator) -> Instance:
    """Piecewise constant, like the mean of regression trees over a table: cells of many sizes."""
    space = SearchSpace(
        (
            Parameter(id="x0", kind=DOUBLE, low=1e-4, high=1e-1, scale=Scale.LOG),
            Parameter(id="x1", kind=DOUBLE, low=0.0, high=1.0),
            Parameter(id="x2", kind=INTEGER, low=1, high=12),
            Parameter(id="x3", kind=DISCRETE, values=(0.1, 0.2, 0.4, 0.8, 1.6), scale=Scale.LOG),
            Parameter(id="x4", kind=CATEGORICAL, values=("a", "b", "c")),
        )
    )
    at = rng.uniform(0.15, 0.85, 4)
    tilt = rng.uniform(-0.5, 0.5, (3, 4))
    level = rng.permutation([0.0, 0.1, 0.2])
    trees = [
        (
            int(rng.integers(4)),
            float(rng.random()),
            int(rng.integers(4)),
            float(rng.random()),
            rng.normal(0, 0.08, 4),
        )
        for _ in range(20)
    ]

    def cell(p: TrialPoint) -> float:
        u = np.array(
            [
                (math.log10(float(p["x0"])) + 4) / 3,
                float(p["x1"]),
                (int(p["x2"]) - 1) / 11,
                math.log2(float(p["x3"]) * 10) / 4,
            ]
        )
        k = "abc".index(str(p["x4"]))
        g = np.floor(u * 12) / 12 - at - 0.1 * tilt[k]
        bumps = sum(leaf[2 * int(u[a] > s) + int(u[b] > t)] for a, s, b, t, leaf in trees)
        return float(3.0 * (g @ g) + level[k] + 0.3 * bumps)

    grid = [
        {"x0": 10.0 ** (-4 + 3 * i), "x1": j, "x2": n, "x3": v, "x4": c}
        for i in np.linspace(0.001, 0.999, 24)
        for j in np.linspace(0.001, 0.999, 24)
        for n in (1, 3, 5, 7, 9, 11)
        for v in (0.1, 0.4, 1.6)
        for c in "abc"
    ]
    least = min(cell(p) for p in grid[::7]) - 0.15
    return Instance(space, cell, least)


DEVELOP: dict[str, Make] = {
    "sphere5": _smooth(5, _sphere),
    "rosenbrock4": _smooth(4, _rosenbrock),
    "branin": branin,
    "rastrigin3": _smooth(3, _rastrigin),
    "ackley6-rotated": _smooth(6, _ackley, rotate=True),
    "steps4": _smooth(4, _steps),
    "hartmann3-noisy": _hartmann(_A3, _P3, -3.86278214782076, noise=0.1),
    "learning-rates": learning_rates,
    "models-tree": models_tree,
    "categories": categories,
}
CHECK: dict[str, Make] = {
    "ellipsoid5-rotated": _smooth(5, _ellipsoid, rotate=True),
    "hartmann6": _hartmann(_A6, _P6, -3.32236801141551),
    "levy4": _smooth(4, _levy),
    "sharp-ridge4": _smooth(4, _sharp_ridge, rotate=True),
    "griewank3": _smooth(3, _griewank),
    "svm-valley": svm_valley,
    "optimizers-tree": optimizers_tree,
    "mixed-noisy": mixed_noisy,
    "integers5": integers,
    "forest-table": forest_table,
    "sphere8-noisy": _smooth(8, _sphere, noise=2.0),
    "goldstein2": mirrored(2, -2.0, 2.0, _goldstein, 3.0),
}
