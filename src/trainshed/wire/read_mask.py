"""Parses a read mask, `name,jobSpec.workerPoolSpecs`, and applies it to an answer. Unknown names are refused.

The valid names are those that the message declares, also where this answer lacks the field. Inside a list a
mask applies to every item.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from trainshed.core.errors import Violation
from trainshed.wire import base, job_schema
from trainshed.wire.faults import invalid
from trainshed.wire.scalars import DEEPEST

LONGEST = 4096
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")

Mask = Mapping[str, "Mask"]  # each kept name with the mask of its members; an empty mask keeps all


def parse_mask(text: str, message: type[base.Message] = job_schema.CustomJob) -> Mask:
    """The mask. An empty text or `*` keeps everything."""
    if len(text) > LONGEST:
        raise invalid((Violation("read_mask", f"must have at most {LONGEST} characters."),))
    wanted = [path.strip() for path in text.split(",") if path.strip()]
    if "*" in wanted:
        return {}
    unknown = [path for path in wanted if not _is_known(path, message)]
    if unknown:
        raise invalid(
            tuple(Violation("read_mask", f'names "{path[:100]}", which does not exist.') for path in unknown)
        )
    mask: dict[str, Any] = {}
    for path in sorted(wanted, key=lambda path: path.count(".")):
        _add(mask, [base.camel(name) for name in path.split(".")])
    return mask


def _is_known(path: str, message: type[base.Message]) -> bool:
    return path.count(".") < DEEPEST and bool(_NAME.fullmatch(path)) and base.has(message, path.split("."))


def _add(mask: dict[str, Any], names: list[str]) -> None:
    name, *rest = names
    if not rest:
        mask[name] = {}
    elif name not in mask:
        mask[name] = {}
        _add(mask[name], rest)
    elif mask[name]:  # an empty mask keeps all already
        _add(mask[name], rest)


def apply_mask(mask: Mask, answer: Mapping[str, Any]) -> dict[str, Any]:
    if not mask:
        return dict(answer)
    return {name: _kept(inner, answer[name]) for name, inner in mask.items() if name in answer}


def _kept(mask: Mask, value: Any) -> Any:
    if not mask:
        return value
    if isinstance(value, Mapping):
        return apply_mask(mask, cast("Mapping[str, Any]", value))
    if isinstance(value, list):
        return [_kept(mask, item) for item in cast("Iterable[Any]", value)]
    return value
