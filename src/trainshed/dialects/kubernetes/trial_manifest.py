"""The manifest of a trial's job: the trialSpec of an Experiment with values in its places. Pure.

Katib replaces `${trialParameters.NAME}` wherever it stands. In commands, arguments and variables the core
does it (`core/tuning/trial_job.py`). A place anywhere else, such as an image or a number of replicas, changes
what the job is: then the manifest of each trial is read anew (`experiment_trials.py`).
"""

import functools
import re
from collections.abc import Iterator, Mapping, Set
from typing import Any, cast

from trainshed.core.tuning.search_space import Parameter, ParameterKind
from trainshed.core.tuning.trial_job import parameter_text
from trainshed.dialects.kubernetes.shape import shapes

TEXTS = frozenset({"command", "args", "env"})  # the fields in which the core fills places
MOST_TRIED = 100  # values of a parameter that are tried when an experiment is applied
_PLACE = re.compile(r"\$\{trialParameters\.([^}]+)\}")


def place(parameter: str) -> str:
    return f"${{trialParameters.{parameter}}}"


def filled(value: object, words: Mapping[str, str], keep: Set[str] = frozenset(), field: str = "") -> Any:
    """With these words in the places of that name, except below the fields to `keep`."""
    match value:
        case str():
            text = _PLACE.sub(lambda match: words.get(match[1], match[0]), value)
            is_number = text != value and field in _numbers() and text.isascii() and text.isdigit()
            return int(text[:18]) if is_number else text
        case dict():
            fields = cast("dict[str, object]", value)
            return {
                name: item if name in keep else filled(item, words, keep, name)
                for name, item in fields.items()
            }
        case list():
            return [filled(item, words, keep, field) for item in cast("list[object]", value)]
        case _:
            return value


def places_elsewhere(value: object) -> Iterator[str]:
    """The names of the places that are not in texts of programs."""
    match value:
        case str():
            yield from _PLACE.findall(value)
        case dict():
            for name, item in cast("dict[str, object]", value).items():
                yield from () if name in TEXTS else places_elsewhere(item)
        case list():
            for item in cast("list[object]", value):
                yield from places_elsewhere(item)
        case _:
            return


def words_to_try(parameter: Parameter) -> tuple[str, ...]:
    """The ends of a range, or the values of a list: a trial may have them."""
    match parameter.kind:
        case ParameterKind.DOUBLE | ParameterKind.INTEGER:
            return parameter_text(parameter.low), parameter_text(parameter.high)
        case _:
            return tuple(map(parameter_text, parameter.values[:MOST_TRIED]))


@functools.cache
def _numbers() -> Set[str]:
    """The fields that are whole numbers: a place is a text, as YAML reads it."""
    return {name for fields in shapes().values() for name, field in fields.items() if field.kind == "number"}
