"""The fields of Kubernetes' manifests, as the command line needs them: to see where a line belongs.

The table is the server's (`../shape.toml`); what becomes of a field is its business.
"""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

_FILE = Path(__file__).parents[1] / "shape.toml"
PLAIN = frozenset({"text", "number", "flag", "amount"})
MAPS = frozenset({"map", "amounts"})
ANY, TEXTS = "any", "texts"
MANIFEST = "manifest"  # a thing of the kind that it says itself


@functools.cache
def shapes() -> Mapping[str, Mapping[str, str]]:
    """For each kind of thing its fields, each with its kind; one that is not used begins with a mark."""
    table: Mapping[str, Mapping[str, str]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: {field: text.partition(" ")[0] for field, text in of.items()} for name, of in table.items()}


def kind_of(field: str) -> str:
    return field.lstrip("~!")


def fits(value: object, shape: str) -> bool:
    """Whether every field is where it may be, and what must hold something does."""
    if not isinstance(value, dict):
        return False
    for name, inner in cast("dict[str, object]", value).items():
        field = shapes()[shape].get(name)
        if field is None or not _holds(inner, kind_of(field)):
            return False
    return True


def _holds(value: object, kind: str) -> bool:
    if kind in PLAIN or kind in (ANY, "EmptyDir"):
        return kind not in PLAIN or not isinstance(value, dict | list)
    if kind in MAPS:
        return value is None or isinstance(value, dict)
    if kind == TEXTS:
        return isinstance(value, list)
    if kind == MANIFEST:
        return isinstance(value, dict) and _fits_own_kind(cast("dict[str, object]", value))
    if kind.startswith("["):
        return isinstance(value, list) and all(fits(item, kind[1:-1]) for item in cast("list[object]", value))
    return fits(value, kind)


def _fits_own_kind(value: dict[str, object]) -> bool:
    kind = str(value.get("kind"))
    return kind not in shapes() or fits(value, kind)
