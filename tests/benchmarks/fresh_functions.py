"""Functions that the default algorithm was not tuned on: written after it, and looked at only to judge it.

`tuning_quality.py` calls them as the set `fresh` and reports them apart. Each makes an instance from a seed,
as those of `tuning_functions.py` do. Who changes the algorithm because of one moves it to
`once_fresh_functions.py`.
"""

import math

import numpy as np

from tests.benchmarks.tuning_functions import (
    CATEGORICAL,
    DISCRETE,
    DOUBLE,
    INTEGER,
    Floats,
    Instance,
    Make,
    cube,
    mirrored,
    rotation,
    vector,
)
from trainshed.core.tuning.search_space import Parameter, Scale, SearchSpace, TrialPoint


def _schwefel(x: Floats) -> float:
    return float(418.98288727243375 * len(x) - (x * np.sin(np.sqrt(np.abs(x)))).sum())


_WELLS = np.array(
    [
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
    ]
)
_DEPTHS = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10.0


def _shekel(x: Floats) -> float:
    return -float((1.0 / (_DEPTHS + ((x[:, None] - _WELLS) ** 2).sum(0))).sum())


def zakharov(rng: np.random.Generator) -> Instance:
    """A long flat plate that rises steeply on both sides."""
    shift = rng.uniform(-2.0, 4.0, 5)
    half = 0.5 * np.arange(1, 6)

    def value(p: TrialPoint) -> float:
        z = vector(p) - shift
        along = float(half @ z)
        return float(z @ z) + along**2 + 0.01 * along**4

    return Instance(cube(5, -5.0, 5.0), value)


def narrow_valley(rng: np.random.Generator) -> Instance:
    """A bent valley, a hundredth as wide as it is long, turned at will."""
    shift, turn = rng.uniform(-3.0, 3.0, 3), rotation(rng, 3)

    def value(p: TrialPoint) -> float:
        a, b, c = turn @ (vector(p) - shift)
        return float(0.05 * a * a + 30.0 * (b - 0.08 * a * a) ** 2 + 2.0 * c * c)

    return Instance(cube(3, -5.0, 5.0), value)


def plateau(rng: np.random.Generator) -> Instance:
    """Flat nearly everywhere; a shallow slope leads to a hole with a flat bottom around it."""
    at, turn = rng.uniform(0.2, 0.8, 4), rotation(rng, 4)
    scale = np.array([1.0, 1.5, 2.0, 3.0])

    def value(p: TrialPoint) -> float:
        z = scale * (turn @ (vector(p) - at))
        far = float(z @ z)
        return 1.0 - 0.6 * math.exp(-1.5 * far) - 0.4 * math.exp(-12.0 * far)

    return Instance(cube(4, 0.0, 1.0), value)


def edges(rng: np.random.Generator) -> Instance:
    """The best place lies on the border of half of the parameters, as it often does with real ones."""
    at = np.where(np.arange(6) < 3, rng.choice([-0.2, 1.2], 6), rng.uniform(0.1, 0.9, 6))
    pull = rng.uniform(0.5, 3.0, 6)

    def shape(x: Floats) -> float:
        return float((pull * (x - at) ** 2).sum())

    least = shape(np.clip(at, 0.0, 1.0))
    return Instance(cube(6, 0.0, 1.0), lambda p: shape(vector(p)), least)


def rosenbrock_noisy(rng: np.random.Generator) -> Instance:
    shift = rng.uniform(-0.5, 0.5, 3)

    def value(p: TrialPoint) -> float:
        x = vector(p) - shift + 1.0
        return float((10.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())

    return Instance(cube(3, -1.5, 2.0), value, noise=1.0)


def momenta(rng: np.random.Generator) -> Instance:
    """Three averages that are best near one, which depend on each other, and noise."""
    space = SearchSpace(
        tuple(
            Parameter(id=f"x{i}", kind=DOUBLE, low=low, high=1.0 - low, scale=Scale.REVERSE_LOG)
            for i, low in enumerate((1e-3, 1e-4, 1e-2))
        )
    )
    lows = np.array([1e-3, 1e-4, 1e-2])
    span = np.log((1.0 - lows) / lows)
    at, turn = rng.uniform(0.2, 0.8, 3), rotation(rng, 3)

    def value(p: TrialPoint) -> float:
        places = np.log((1.0 - vector(p)) / lows) / span
        z = turn @ (places - at)
        return float((np.array([0.5, 2.0, 5.0]) * z * z).sum())

    return Instance(space, value, noise=0.02)


def list_grid(rng: np.random.Generator) -> Instance:
    """Five lists of numbers, uneven ones among them, whose effects depend on each other."""
    lists = (
        (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0),
        (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        (8.0, 16.0, 32.0, 64.0, 128.0, 256.0),
        (0.0, 0.25, 0.5, 1.0, 2.0),
        (10.0, 20.0, 50.0, 100.0, 200.0, 500.0),
    )
    logs = (False, False, True, False, True)
    space = SearchSpace(
        tuple(
            Parameter(id=f"x{i}", kind=DISCRETE, values=v, scale=Scale.LOG if log else Scale.LINEAR)
            for i, (v, log) in enumerate(zip(lists, logs, strict=True))
        )
    )
    places = [np.linspace(0.0, 1.0, len(v)) for v in lists]
    best = np.array([float(rng.choice(p)) for p in places])
    turn = rotation(rng, 5)
    stretch = np.array([1.0, 1.5, 2.5, 4.0, 6.0])

    def value(p: TrialPoint) -> float:
        x = np.array([places[i][lists[i].index(float(p[f"x{i}"]))] for i in range(5)])
        z = turn @ (x - best)
        return float((stretch * z * z).sum())

    return Instance(space, value)


def layers_tree(rng: np.random.Generator) -> Instance:
    """A number of layers, each with a width of its own where it is there, and a rate for all."""
    space = SearchSpace(
        (
            Parameter(id="layers", kind=INTEGER, low=1, high=4),
            Parameter(id="rate", kind=DOUBLE, low=1e-5, high=1e-1, scale=Scale.LOG),
            *(
                Parameter(
                    id=f"units{i}",
                    kind=INTEGER,
                    low=8,
                    high=512,
                    scale=Scale.LOG,
                    parent="layers",
                    parent_values=tuple(range(i, 5)),
                )
                for i in range(2, 5)
            ),
        )
    )
    best, rate = int(rng.integers(2, 5)), rng.uniform(-4.2, -2.0)
    widths = 2 ** rng.integers(4, 9, 5)

    def value(p: TrialPoint) -> float:
        layers = int(p["layers"])
        off = math.log10(float(p["rate"])) - rate + 0.25 * (layers - best)
        uneven = sum((math.log2(float(p[f"units{i}"]) / widths[i])) ** 2 for i in range(2, layers + 1))
        return 0.05 * off * off + 0.04 * abs(layers - best) + 0.01 * uneven

    return Instance(space, value)


def pipeline_tree(rng: np.random.Generator) -> Instance:
    """A scaler, a selector and a classifier, the last two with parameters of their own, and noise."""
    space = SearchSpace(
        (
            Parameter(id="scaler", kind=CATEGORICAL, values=("none", "standard", "robust")),
            Parameter(id="select", kind=CATEGORICAL, values=("all", "best")),
            Parameter(id="kept", kind=INTEGER, low=2, high=40, parent="select", parent_values=("best",)),
            Parameter(id="model", kind=CATEGORICAL, values=("ridge", "boost")),
            Parameter(
                id="l2",
                kind=DOUBLE,
                low=1e-4,
                high=1e4,
                scale=Scale.LOG,
                parent="model",
                parent_values=("ridge",),
            ),
            Parameter(
                id="rate",
                kind=DOUBLE,
                low=1e-3,
                high=1.0,
                scale=Scale.LOG,
                parent="model",
                parent_values=("boost",),
            ),
            Parameter(id="leaves", kind=INTEGER, low=4, high=256, parent="model", parent_values=("boost",)),
        )
    )
    scalers: dict[str, float] = dict(
        zip(("none", "standard", "robust"), rng.permutation([0.0, 0.02, 0.08]), strict=True)
    )
    models: dict[str, float] = dict(zip(("ridge", "boost"), rng.permutation([0.0, 0.06]), strict=True))
    kept, l2, rate, leaves = (
        rng.integers(5, 35),
        rng.uniform(-2, 2),
        rng.uniform(-2.3, -0.7),
        rng.uniform(0.2, 0.8),
    )

    def value(p: TrialPoint) -> float:
        model = str(p["model"])
        loss = models[model] + scalers[str(p["scaler"])] * (1.0 if model == "ridge" else 0.2)
        loss += 0.05 if p["select"] == "all" else 0.0004 * (int(p["kept"]) - kept) ** 2
        if model == "ridge":
            return loss + 0.03 * (math.log10(float(p["l2"])) - l2) ** 2
        size = (int(p["leaves"]) - 4) / 252 - leaves
        return loss + 0.2 * (math.log10(float(p["rate"])) - rate + 0.5 * size) ** 2 + 0.15 * size * size

    return Instance(space, value, noise=0.02)


def boosting(rng: np.random.Generator) -> Instance:
    """Error of boosted trees over six mixed parameters: rounds and rate trade off; noise of the splits."""
    space = SearchSpace(
        (
            Parameter(id="rounds", kind=INTEGER, low=20, high=2000, scale=Scale.LOG),
            Parameter(id="rate", kind=DOUBLE, low=1e-3, high=0.5, scale=Scale.LOG),
            Parameter(id="depth", kind=INTEGER, low=2, high=12),
            Parameter(id="rows", kind=DOUBLE, low=0.3, high=1.0),
            Parameter(id="l1", kind=DISCRETE, values=(0.0, 0.1, 1.0, 10.0)),
            Parameter(id="grow", kind=CATEGORICAL, values=("depth", "loss")),
        )
    )
    work, depth, rows = rng.uniform(0.9, 1.6), rng.uniform(3.0, 9.0), rng.uniform(0.5, 0.95)
    cost = dict(zip((0.0, 0.1, 1.0, 10.0), rng.permutation([0.0, 0.005, 0.015, 0.05]), strict=True))
    better = str(rng.choice(["depth", "loss"]))
    least = min(0.004 * (whole - depth) ** 2 for whole in range(2, 13))

    def value(p: TrialPoint) -> float:
        done = math.log10(int(p["rounds"]) * float(p["rate"])) - work
        fitted = 0.12 * done * done if done < 0 else 0.05 * done * done
        rough = 0.02 * max(math.log10(float(p["rate"])) + 1.0, 0.0) ** 2
        sampled = 0.1 * (float(p["rows"]) - rows) ** 2
        grown = 0.0 if p["grow"] == better else 0.01
        return (
            fitted + rough + 0.004 * (int(p["depth"]) - depth) ** 2 + sampled + cost[float(p["l1"])] + grown
        )

    return Instance(space, value, least, noise=0.01)


def wells(rng: np.random.Generator) -> Instance:
    """Five round holes of unlike depth and width in a plain, the deepest no wider than others."""
    at, width = rng.uniform(0.1, 0.9, (5, 5)), rng.uniform(0.2, 0.45, 5)
    depth = np.array([1.0, 0.9, 0.8, 0.7, 0.6])

    def value(p: TrialPoint) -> float:
        far = ((vector(p) - at) ** 2).sum(1)
        return -float((depth * np.exp(-0.5 * far / width**2)).max())

    return Instance(cube(5, 0.0, 1.0), value, -1.0)


def _dixon_price(x: Floats) -> float:
    index = np.arange(2, len(x) + 1)
    return float((x[0] - 1.0) ** 2 + (index * (2.0 * x[1:] ** 2 - x[:-1]) ** 2).sum())


def steepest_slope(rng: np.random.Generator) -> Instance:
    """The largest of eight slopes: straight everywhere but for edges, with a corner at the best place."""
    at, slopes = rng.uniform(-3.0, 3.0, 4), rng.standard_normal((4, 4)) * np.array([1.0, 2.0, 4.0, 8.0])
    return Instance(cube(4), lambda p: float(np.abs((vector(p) - at) @ slopes).max()))


def machines_tree(rng: np.random.Generator) -> Instance:
    """Error of a kernel machine: which kernel, and what each of them has besides."""
    space = SearchSpace(
        (
            Parameter(id="kernel", kind=CATEGORICAL, values=("linear", "poly", "rbf")),
            Parameter(id="c", kind=DOUBLE, low=1e-3, high=1e3, scale=Scale.LOG),
            Parameter(
                id="gamma",
                kind=DOUBLE,
                low=1e-5,
                high=10.0,
                scale=Scale.LOG,
                parent="kernel",
                parent_values=("poly", "rbf"),
            ),
            Parameter(id="degree", kind=INTEGER, low=2, high=7, parent="kernel", parent_values=("poly",)),
        )
    )
    base: dict[str, float] = dict(
        zip(("linear", "poly", "rbf"), rng.permutation([0.0, 0.03, 0.1]), strict=True)
    )
    c, gamma, degree = rng.uniform(-1.5, 1.5), rng.uniform(-3.5, -0.5), int(rng.integers(2, 8))

    def value(p: TrialPoint) -> float:
        kernel, off = str(p["kernel"]), math.log10(float(p["c"])) - c
        if kernel == "linear":
            return base[kernel] + 0.3 * (1.0 - math.exp(-0.3 * off * off))
        width = math.log10(float(p["gamma"])) - gamma
        far = 0.3 * (off + width) ** 2 + 0.06 * (off - width) ** 2
        steps = 0.02 * abs(int(p["degree"]) - degree) if kernel == "poly" else 0.0
        return base[kernel] + steps + 0.4 * (1.0 - math.exp(-far))

    return Instance(space, value)


def loader(rng: np.random.Generator) -> Instance:
    """Seconds of a program that reads data, over whole numbers that trade off; noise of the machine."""
    space = SearchSpace(
        (
            Parameter(id="workers", kind=INTEGER, low=1, high=64, scale=Scale.LOG),
            Parameter(id="batch", kind=INTEGER, low=1, high=1024, scale=Scale.LOG),
            Parameter(id="ahead", kind=INTEGER, low=0, high=16),
            Parameter(id="share", kind=DOUBLE, low=0.05, high=0.95),
        )
    )
    workers, batch = 2 ** int(rng.integers(1, 6)), 2 ** int(rng.integers(3, 9))
    ahead, share = int(rng.integers(2, 13)), rng.uniform(0.2, 0.8)

    def value(p: TrialPoint) -> float:
        wide, high = math.log2(int(p["workers"]) / workers), math.log2(int(p["batch"]) / batch)
        late = max(ahead - int(p["ahead"]), 0) * 0.05 + max(int(p["ahead"]) - ahead, 0) * 0.01
        return (
            0.1 * abs(wide) + 0.03 * (high + 0.5 * wide) ** 2 + late + 0.5 * (float(p["share"]) - share) ** 2
        )

    return Instance(space, value, noise=0.02)


def recipe(rng: np.random.Generator) -> Instance:
    """Two words, two lists of numbers and an average best near one: each word moves the best of others."""
    words, ends = ("a", "b", "c", "d", "e"), ("u", "v", "w")
    sizes, rates = (16.0, 24.0, 32.0, 64.0, 96.0, 128.0), (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
    space = SearchSpace(
        (
            Parameter(id="word", kind=CATEGORICAL, values=words),
            Parameter(id="end", kind=CATEGORICAL, values=ends),
            Parameter(id="size", kind=DISCRETE, values=sizes, scale=Scale.LOG),
            Parameter(id="rate", kind=DISCRETE, values=rates),
            Parameter(id="keep", kind=DOUBLE, low=0.01, high=0.999, scale=Scale.REVERSE_LOG),
        )
    )
    level = np.add.outer(rng.permutation([0.0, 0.02, 0.05, 0.1, 0.2]), rng.permutation([0.0, 0.03, 0.1]))
    size, rate = rng.integers(0, 6, 5), rng.integers(0, 6, 3)
    keep = rng.uniform(-1.8, -0.2, 5)

    def value(p: TrialPoint) -> float:
        word, end = words.index(str(p["word"])), ends.index(str(p["end"]))
        off = (sizes.index(float(p["size"])) - size[word]) / 5.0
        drop = (rates.index(float(p["rate"])) - rate[end]) / 5.0
        near = math.log10(1.009 - float(p["keep"])) - keep[word]
        return float(level[word, end] + 0.2 * off * off + 0.15 * (drop + 0.3 * off) ** 2 + 0.08 * near * near)

    return Instance(space, value)


FRESH: dict[str, Make] = {
    "schwefel2": mirrored(2, -500.0, 500.0, _schwefel, 0.0),
    "shekel4": mirrored(4, 0.0, 10.0, _shekel, -10.5364431534836),
    "zakharov5": zakharov,
    "narrow-valley3": narrow_valley,
    "plateau4": plateau,
    "edges6": edges,
    "rosenbrock3-noisy": rosenbrock_noisy,
    "momenta3-noisy": momenta,
    "list-grid5": list_grid,
    "layers-tree": layers_tree,
    "pipeline-tree-noisy": pipeline_tree,
    "boosting-noisy": boosting,
    "wells5": wells,
    "dixon-price4": mirrored(4, -10.0, 10.0, _dixon_price, 0.0),
    "steepest-slope4": steepest_slope,
    "machines-tree": machines_tree,
    "loader-noisy": loader,
    "recipe": recipe,
}
