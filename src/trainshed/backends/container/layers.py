"""How far a pull or push is, from what the engine says of each layer. Pure.

Docker names all layers first; Podman names them as it comes to them, so what is not known of a layer is taken
to be like the others, and the percent never goes back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainshed.core.image import ImageStep

MIB = 1 << 20
_OVER = frozenset(
    {"Already exists", "Layer already exists", "Download complete", "Pull complete", "Pushed", "Mounted from"}
)
_UNPACKING = frozenset({"Extracting", "Verifying Checksum"})


@dataclass(slots=True)
class Layer:
    done: int = 0
    total: int = 0
    is_over: bool = False


@dataclass(slots=True)
class Layers:
    doing: str  # "Pulling image X"
    layers: dict[str, Layer] = field(default_factory=dict[str, Layer])
    percent: int | None = None
    digest: str = ""

    def hear(self, told: Mapping[str, Any]) -> None:
        status, key = str(told.get("status", "")), str(told.get("id", ""))
        if not key:
            return
        if status.startswith("Pulling from"):  # Docker says the tag as if it were a layer
            return
        layer = self.layers.setdefault(key, Layer())
        detail: Mapping[str, Any] = told.get("progressDetail") or {}
        if status in _UNPACKING or status.partition(" (")[0] in _OVER or status.startswith("Mounted from"):
            layer.is_over = True
        elif detail.get("total"):
            layer.done, layer.total = int(detail.get("current") or 0), max(0, int(detail["total"]))
        self._count()

    def _count(self) -> None:
        # One that was over before its size was told is too small to count.
        coming = [layer for layer in self.layers.values() if layer.total or not layer.is_over]
        known = [layer.total for layer in coming if layer.total]
        if not known:
            return
        usual = sum(known) / len(known)
        total = sum(layer.total or usual for layer in coming)
        done = sum(layer.total if layer.is_over else min(layer.done, layer.total) for layer in coming)
        self.percent = max(self.percent or 0, min(99, int(100 * done / total)))

    @property
    def is_moving(self) -> bool:
        """Whether bytes are still to come: then silence means that they do not."""
        return not self.layers or not all(layer.is_over for layer in self.layers.values())

    @property
    def step(self) -> ImageStep:
        coming = [layer for layer in self.layers.values() if layer.total]
        total = sum(layer.total for layer in coming)
        done = sum(layer.total if layer.is_over else layer.done for layer in coming)
        if not self.layers:
            said = "asking its registry"
        elif not self.is_moving:
            said = "all is here, it is unpacked"
        elif self.percent is None:
            said = f"{sum(layer.is_over for layer in self.layers.values())} of {len(self.layers)} layers"
        else:
            said = f"{self.percent} %, {done / MIB:.0f} of {total / MIB:.0f} MiB"
        return ImageStep(text=f"{self.doing}: {said}", percent=self.percent)
