"""What a trial measured: values of its metrics by step, where they were found, and the words where none was.

A program may report in four ways at once (`MetricChannel`, in the order in which they count). The adapters
and `control/measurements.py` turn each into points; the functions here join them. Studies judge the result.
NaN and infinite values stay: a study decides what they mean. Pure.
"""

import difflib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

DEFAULT_METRIC = "training/hptuning/metric"  # the name of a metric that cloudml-hypertune was given none for
MOST_MEASUREMENTS = 1000
MOST_NAMES = 100  # of one channel, that a look tells
LONGEST_NAME = 200
_HIGHEST_STEP = 2**53  # what JSON keeps exactly
_SHOWN = 8  # names of a channel in a sentence


class MetricChannel(StrEnum):
    """The ways to report a metric. If two have the same metric, the first in this order counts."""

    HYPERTUNE = "hypertune"
    TENSORBOARD = "tensorboard"
    STDOUT = "stdout"
    REPORT = "report"

    @property
    def words(self) -> str:
        match self:
            case MetricChannel.HYPERTUNE:
                return "cloudml-hypertune"
            case MetricChannel.TENSORBOARD:
                return "TensorBoard"
            case MetricChannel.STDOUT:
                return "the output"
            case MetricChannel.REPORT:
                return "trainshed.report"
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The values of one step. `elapsed`: seconds since the start of the trial."""

    step: int
    elapsed: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One value of one metric, as a channel has it. `at`: seconds since the epoch."""

    step: int
    at: float
    value: float


@dataclass(frozen=True, slots=True)
class ReportedEntry:
    """One report of a program through a file."""

    channel: MetricChannel
    at: float  # seconds since the epoch
    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ChannelLook:
    """What was found in a channel: the names of all its metrics, wanted or not, and what was wrong."""

    channel: MetricChannel
    names: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TrialReport:
    measurements: tuple[Measurement, ...] = ()  # by step
    looks: tuple[ChannelLook, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The metrics that were measured at least once."""
        return frozenset(name for item in self.measurements for name in item.values)


Curves = Mapping[str, Sequence[MetricPoint]]  # by metric


def valid_step(number: float | None) -> int | None:
    """The number as a step; None where it cannot be one."""
    if number is None or not math.isfinite(number) or not 0 <= number <= _HIGHEST_STEP:
        return None
    return int(number)


def settled(points: Iterable[MetricPoint]) -> list[MetricPoint]:
    """Points in order of steps. A program that goes back to a step has started over there: what it said
    before of this step and of later ones is dropped."""
    result: list[MetricPoint] = []
    for point in sorted(points, key=lambda point: point.at):
        while result and result[-1].step >= point.step:
            result.pop()
        result.append(point)
    return result


def extremes(values: Sequence[float]) -> set[int]:
    """Where the first, the last, the lowest and the highest value stand."""
    if not values:
        return set()
    places = {0, len(values) - 1}
    if numbers := [at for at, value in enumerate(values) if not math.isnan(value)]:
        places |= {min(numbers, key=values.__getitem__), max(numbers, key=values.__getitem__)}
    return places


def evenly(count: int, kept: Collection[int], most: int) -> list[int]:
    """At most so many of `count` places: those to be kept, and others evenly between them."""
    if count <= most:
        return list(range(count))
    must = set(sorted(kept)[-most:])
    others = [at for at in range(count) if at not in must]
    room = most - len(must)
    return sorted(must | {others[at * len(others) // room] for at in range(room)})


def thin(points: Sequence[MetricPoint], most: int) -> list[MetricPoint]:
    """At most so many of them, with the first, the last, the lowest and the highest."""
    return [points[at] for at in evenly(len(points), extremes([point.value for point in points]), most)]


def merge(
    channels: Mapping[MetricChannel, Curves],
    metrics: Sequence[str],
    started_at: float,
    until: float,
    most: int = MOST_MEASUREMENTS,
) -> tuple[Measurement, ...]:
    """The measurements of a trial that ran between two moments (seconds since the epoch).

    Each metric comes from the first channel that has it. At most `most` steps stay, and of each metric the
    first, the last, the lowest and the highest value.
    """
    values: dict[int, dict[str, float]] = {}
    times: dict[int, float] = {}
    kept: set[int] = set()  # steps
    for name in dict.fromkeys(metrics):
        curve = settled(next(filter(None, (_points(channels, item, name) for item in MetricChannel)), ()))
        kept |= {curve[at].step for at in extremes([point.value for point in curve])}
        for point in curve:
            values.setdefault(point.step, {})[name] = point.value
            times[point.step] = max(point.at, times.get(point.step, point.at))
    steps = sorted(values)
    chosen = evenly(len(steps), {at for at, step in enumerate(steps) if step in kept}, most)
    longest = max(0.0, until - started_at)
    return tuple(
        Measurement(step, min(max(0.0, times[step] - started_at), longest), values[step])
        for step in (steps[at] for at in chosen)
    )


def _points(
    channels: Mapping[MetricChannel, Curves], channel: MetricChannel, name: str
) -> Sequence[MetricPoint]:
    return channels.get(channel, {}).get(name, ())


def missing_sentence(wanted: str | Sequence[str], looks: Sequence[ChannelLook]) -> str:
    """Why there is no value of the metrics: where was looked, what was there, what was probably meant."""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    quoted = " or ".join(f"'{name}'" for name in names)
    parts = [f"The program reported no value of {quoted}."]
    if looks:
        parts.append(f"Looked at: {'; '.join(map(_seen, looks))}.")
    guesses = [guess for name in names if (guess := _guess(name, looks))]
    if guesses:
        parts.append(f"Did you mean {' and '.join(dict.fromkeys(guesses))}?")
    return " ".join(parts)


def _seen(look: ChannelLook) -> str:
    more = len(look.names) - _SHOWN
    shown = ", ".join(f"'{name}'" for name in look.names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    detail = "; ".join(filter(None, (shown, look.problem)))
    return f"{look.channel.words} ({detail or 'nothing there'})"


def _guess(wanted: str, looks: Sequence[ChannelLook]) -> str:
    names = list(dict.fromkeys(name for look in looks for name in look.names if name != wanted))
    by_key = {_key(name): name for name in reversed(names)}
    key = _key(wanted)
    close = difflib.get_close_matches(key, by_key, n=1, cutoff=0.7)
    within = [known for known in by_key if known and (known in key or key in known)]
    best = close or sorted(within, key=len, reverse=True)[:1]
    return f"'{by_key[best[0]]}'" if best else ""


def _key(name: str) -> str:
    """A name without what people write differently."""
    return "".join(letter for letter in name.rpartition("/")[2].lower() if letter.isalnum())
