"""Whether a trial should end before its time, by its curve and those of others. Pure.

The loop that moves studies calls `should_stop` when a trial has reported. Each rule is a value. The answer is
a sentence with numbers, or None. A curve runs over steps or over seconds, as the study says; values that are
not finite are left out. A trial is never stopped by what it has not had time to show: each rule says what it
waits for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from trainshed.core.curve import Curve
from trainshed.core.tuning.extrapolate import chance_to_reach

_UNLIKELY = 0.01  # below this chance of beating the best a trial is stopped


@dataclass(frozen=True, slots=True)
class MedianRule:
    """Stop below the median of what completed trials had on average by the same place."""

    least_measurements: int = 1
    least_trials: int = 1  # that have completed


@dataclass(frozen=True, slots=True)
class DecayCurveRule:
    """Stop when the curve, continued to where completed trials end, hardly ever beats the best of them."""

    least_measurements: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexRule:
    """Stop when the present slope, kept until the last step, would not reach the best completed trial."""

    last_step: float
    least_step: float | None = None  # a tenth of the last
    least_measurements: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AshaRule:
    """Asynchronous successive halving: at each rung only the best of all that reached it go on.

    A trial that passed a rung among the first is judged there again as others come, until it reaches the
    next. Nobody is stopped at the last step, where its program is about to store what it learned.
    """

    first_rung: float
    last_step: float = math.inf
    reduction: float = 3.0  # one of so many goes on, and the next rung is so many times further


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperbandRule:
    """Successive halving in brackets, which differ in where their first rung is. Trials take turns."""

    first_rung: float
    last_step: float
    reduction: float = 3.0


JudgingRule = MedianRule | DecayCurveRule | ConvexRule | AshaRule | HyperbandRule


@dataclass(frozen=True, slots=True)
class JudgedTrial:
    """A trial as rules see it. Numbers begin with 1."""

    number: int
    curve: Curve
    is_completed: bool = False


def should_stop(
    rule: JudgingRule, trial: JudgedTrial, others: Sequence[JudgedTrial], *, maximize: bool
) -> str | None:
    """Why the trial should be stopped now, or None. The trial itself may be among the others."""
    own = _upward(trial.curve, maximize)
    rest = [
        (other, curve)
        for other in others
        if other.number != trial.number and (curve := _upward(other.curve, maximize)).places
    ]
    if not own.places:
        return None
    completed = [curve for other, curve in rest if other.is_completed]
    sign = 1.0 if maximize else -1.0
    match rule:
        case MedianRule():
            return _median(rule, own, completed, sign)
        case DecayCurveRule():
            return _decay(rule, own, completed, sign)
        case ConvexRule():
            return _convex(rule, own, completed, sign)
        case AshaRule():
            return _halving(rule, own, [curve for _, curve in rest], rule.first_rung, sign)
        case HyperbandRule():
            bracket = bracket_of(rule, trial.number)
            same = [curve for other, curve in rest if bracket_of(rule, other.number) == bracket]
            return _halving(rule, own, same, rule.first_rung * rule.reduction**bracket, sign)
        case _:
            assert_never(rule)


def _upward(curve: Curve, maximize: bool) -> Curve:
    """What is finite of a curve, turned so that more is better."""
    pairs = [
        (place, value if maximize else -value)
        for place, value in zip(curve.places, curve.values, strict=True)
        if math.isfinite(value) and math.isfinite(place)
    ]
    return Curve([place for place, _ in pairs], [value for _, value in pairs])


def _until(curve: Curve, place: float) -> list[float]:
    return [value for at, value in zip(curve.places, curve.values, strict=True) if at <= place]


def _median(rule: MedianRule, own: Curve, completed: Sequence[Curve], sign: float) -> str | None:
    last = own.places[-1]
    averages = sorted(_mean(values) for curve in completed if (values := _until(curve, last)))
    if len(averages) < rule.least_trials or len(own.places) < rule.least_measurements:
        return None
    middle = len(averages) // 2
    median = averages[middle] if len(averages) % 2 else (averages[middle - 1] + averages[middle]) / 2
    best = max(own.values)
    if best >= median:
        return None
    return (
        f"Its best value up to {last:g}, {sign * best:.6g}, is worse than {sign * median:.6g}, the median "
        f"of the averages of {len(averages)} completed trials up to there."
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(value / len(values) for value in values)


def _decay(rule: DecayCurveRule, own: Curve, completed: Sequence[Curve], sign: float) -> str | None:
    if not completed or len(own.places) < rule.least_measurements:
        return None
    best = max(max(curve.values) for curve in completed)
    end = max(curve.places[-1] for curve in completed)
    if max(own.values) >= best or own.places[-1] >= end:
        return None
    chance = chance_to_reach(own, end, best)
    if chance is None or chance >= _UNLIKELY:
        return None
    return (
        f"Continued to {end:g}, its curve beats the best completed trial, {sign * best:.6g}, with a "
        f"probability of {chance:.2%}."
    )


def _convex(rule: ConvexRule, own: Curve, completed: Sequence[Curve], sign: float) -> str | None:
    last = own.places[-1]
    least = rule.last_step / 10 if rule.least_step is None else rule.least_step
    if not completed or last < least or len(own.places) < rule.least_measurements:
        return None
    # The steepest way from a point of the later half to the end: curves that flatten stay below it.
    half = len(own.places) // 2
    slopes = [
        (own.values[-1] - own.values[i]) / (last - own.places[i])
        for i in range(half, len(own.places) - 1)
        if own.places[i] < last
    ]
    if not slopes or all(value == own.values[0] for value in own.values):
        return None
    most = max(own.values) + max(0.0, *slopes) * max(0.0, rule.last_step - last)
    best = max(max(curve.values) for curve in completed)
    if most >= best:
        return None
    return (
        f"At its present slope it reaches at most {sign * most:.6g} at step {rule.last_step:g}; the best "
        f"completed trial has {sign * best:.6g}."
    )


def bracket_of(rule: HyperbandRule, number: int) -> int:
    """The bracket of a trial: 0 has the first rung, each further one starts `reduction` times later.

    Bracket b has more trials the more rungs it has, so that all brackets get about the same time.
    """
    rungs = 1
    while rule.first_rung * rule.reduction**rungs <= rule.last_step and rungs < 64:
        rungs += 1
    shares = [max(1, round(rule.reduction ** (rungs - 1 - b) * rungs / (rungs - b))) for b in range(rungs)]
    position = (number - 1) % sum(shares)
    for bracket, share in enumerate(shares):
        if position < share:
            return bracket
        position -= share
    return rungs - 1


def _halving(
    rule: AshaRule | HyperbandRule, own: Curve, others: Sequence[Curve], first: float, sign: float
) -> str | None:
    """Judged at the last rung that it reached, by the best value up to there."""
    last, reduction = own.places[-1], rule.reduction
    if last < first or last >= rule.last_step or first <= 0 or reduction <= 1:
        return None
    rung = first
    while rung * reduction <= last:
        rung *= reduction
    # The first report at or beyond a rung counts for it: reports rarely fall on it.
    reached = [_at_rung(curve, rung) for curve in others if curve.places[-1] >= rung]
    best = _at_rung(own, rung)
    everyone = len(reached) + 1
    if everyone < reduction:
        return None
    going_on = math.ceil(everyone / reduction)  # up: a good trial lost costs most
    better = sum(value > best for value in reached)
    if better < going_on:
        return None
    return (
        f"At {rung:g} its best value is {sign * best:.6g}; {better} of {everyone} trials that came this far "
        f"are better, and {going_on} may go on."
    )


def _at_rung(curve: Curve, rung: float) -> float:
    first = next(place for place in curve.places if place >= rung)
    return max(_until(curve, first))
