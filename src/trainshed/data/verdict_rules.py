"""The rules by which failures are judged, read from the data file when the first job fails.

The file ships with the package, so a mistake in it is a mistake in the code: it is not explained, it just
raises.
"""

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainshed.core.event import Reason
from trainshed.core.jobs.verdict import Cause, Rule, Rules

_FILE = Path(__file__).parent / "verdicts.toml"
_STEPS = ("ends", "words", "rest")


@functools.cache
def load_rules() -> Rules:
    """All there are, in the order they are tried."""
    return read_rules(tomllib.loads(_FILE.read_text(encoding="utf-8")))


def read_rules(data: Mapping[str, Any]) -> Rules:
    unknown = data.keys() - {"wrappers", *_STEPS}
    if unknown:
        raise ValueError(f"no such step: {', '.join(sorted(unknown))}")
    ends, words, rest = (tuple(_rule(row) for row in data.get(step, ())) for step in _STEPS)
    return Rules(ends=ends, words=words, rest=rest, wrappers=_any_of(data.get("wrappers", ())))


def _rule(row: Mapping[str, Any]) -> Rule:
    fields = dict(row)
    return Rule(
        cause=Cause(fields.pop("cause")),
        signals=frozenset(fields.pop("signals", ())),
        codes=frozenset(fields.pop("codes", ())),
        reasons=frozenset(map(Reason, fields.pop("reasons", ()))),
        pattern=_any_of(fields.pop("patterns", ())),
        **fields,
    )


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.MULTILINE) if patterns else None
