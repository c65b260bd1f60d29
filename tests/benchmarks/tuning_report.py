"""What studies of several methods say: mean ranks, Wilcoxon's p, medians of the regret, the time of an ask.

`tuning_quality.py` calls it with one row for each study. Methods are compared only where each of them has a
study of the same function, seed and number of trials at a time.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from tests.benchmarks.fresh_functions import FRESH

MARKS = (20, 50, 100)
_LEAST = 1e-9  # a smaller regret is as good as none
Studies = dict[tuple[str, int, int], dict[str, dict]]  # by function, seed and trials at a time: by method


def whole_report(rows: Iterable[dict], methods: list[str], ahead: str) -> str:
    """With and without the slow method, which has fewer seeds; with functions known and fresh apart."""
    rows = list(rows)
    lines: list[str] = []
    for some in [methods] if "gp" not in methods else [[m for m in methods if m != "gp"], methods]:
        studies = _paired(rows, some)
        known = {key: value for key, value in studies.items() if key[0] not in FRESH}
        fresh = {key: value for key, value in studies.items() if key[0] in FRESH}
        whole = studies if known and fresh else {}
        for title, part in (("known functions", known), ("fresh functions", fresh), ("all", whole)):
            if part and len(some) > 1:
                lines += [f"== {title}: {_extent(part)}; {', '.join(some)}", *_ranks(part, some, ahead)]
        if studies and len(some) > 1:
            lines += [*_medians(studies, some, ahead), *_times(studies, some)]
    return "\n".join(lines) or "no study was made with all methods"


def _paired(rows: list[dict], methods: list[str]) -> Studies:
    cells: Studies = defaultdict(dict)
    for row in rows:
        cells[row["function"], row["seed"], row["parallel"]][row["method"]] = row
    return {key: value for key, value in cells.items() if all(m in value for m in methods)}


def _extent(studies: Studies) -> str:
    functions, seeds = {key[0] for key in studies}, {key[1] for key in studies}
    return f"{len(studies)} paired studies of {len(functions)} functions, {len(seeds)} seeds"


def _ranks(studies: Studies, methods: list[str], ahead: str) -> list[str]:
    from scipy.stats import rankdata, wilcoxon

    lines: list[str] = []
    for mark in map(str, MARKS):
        some = [v for v in studies.values() if all(mark in v[m]["regret"] for m in methods)]
        if not some:
            continue
        table = np.array([[max(v[m]["regret"][mark], _LEAST) for m in methods] for v in some])
        ranks = np.array([rankdata(row) for row in table])
        means = "  ".join(f"{m} {r:.2f}" for m, r in zip(methods, ranks.mean(0), strict=True))
        lines.append(f"after {mark}: mean rank {means}")
        first = methods.index(ahead)
        for index, other in enumerate(methods):
            if other != ahead:
                gaps = ranks[:, first] - ranks[:, index]
                result: Any = wilcoxon(gaps, alternative="less") if np.any(gaps) else None
                p = result.pvalue if result is not None else 1.0
                wins = float((table[:, first] < table[:, index]).mean())
                lines.append(f"    ahead of {other}: p = {p:.2g}, better in {wins:.0%}")
    return lines


def _medians(studies: Studies, methods: list[str], ahead: str) -> list[str]:
    lines = [f"median regret of {', '.join(methods)} by function, trials at a time and mark"]
    worse: list[str] = []
    for function, parallel in sorted({(k[0], k[2]) for k in studies}):
        parts: list[str] = []
        group = [v for k, v in studies.items() if (k[0], k[2]) == (function, parallel)]
        for mark in map(str, MARKS):
            some = [v for v in group if all(mark in v[m]["regret"] for m in methods)]
            if not some:
                continue
            middle = {m: float(np.median([v[m]["regret"][mark] for v in some])) for m in methods}
            rival = min((m for m in methods if m != ahead), key=lambda m: middle[m])
            ratio = max(middle[ahead], _LEAST) / max(middle[rival], _LEAST)
            parts.append(" ".join(f"{middle[m]:8.2g}" for m in methods))
            if ratio > 2:
                worse.append(f"  {function}, {parallel} at a time, after {mark}: {ratio:.1f} times {rival}'s")
        lines.append(f"  {function:20} {parallel} ({len(group)}): " + " | ".join(parts))
    return [*lines, f"more than twice the best other in the median: {len(worse) or 'nowhere'}", *worse]


def _times(studies: Studies, methods: list[str]) -> list[str]:
    lines: list[str] = []
    for method in methods:
        middle = float(np.median([v[method]["ask"] for v in studies.values()]))
        most = max(v[method]["ask_most"] for v in studies.values())
        lines.append(
            f"CPU of the last asks of {method}: median {1e3 * middle:.0f} ms, most {1e3 * most:.0f} ms"
        )
    return lines
