"""Numbers are computed on one core here. It must be said before the first test imports numpy."""

from tests import one_core

__all__ = ["one_core"]
