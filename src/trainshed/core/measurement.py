"""Stand-in until the real one comes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    step: int
    elapsed: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLook:
    channel: str
    names: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReport:
    measurements: tuple[Measurement, ...] = ()
    looks: tuple[ChannelLook, ...] = ()


def missing_sentence(wanted: Sequence[str], looks: Sequence[ChannelLook]) -> str:
    return f"It reported no {' or '.join(wanted)}."
