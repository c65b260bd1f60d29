"""Objects of Kubernetes as plain JSON. Pure: whoever only reads or makes them needs no client."""

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]


def part(item: Mapping[str, Any], name: str) -> Object:
    """An object inside another; empty where it is not there."""
    return item.get(name) or {}


def parts(item: Mapping[str, Any], name: str) -> list[Object]:
    """A list of objects inside another; empty where it is not there."""
    return item.get(name) or []
