"""Stand-in until the real one comes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    step: int = 0
    elapsed: float = 0.0
    values: Mapping[str, float] = field(default_factory=dict[str, float])


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
