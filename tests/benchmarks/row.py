"""One line of the table: what was measured, beside the floor taken in the same run."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    what: str
    floor: str
    ours: str
    value: float
    goal: float
    unit: str = "x"
    at_least: bool = False

    @property
    def is_reached(self) -> bool:
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def cells(self) -> tuple[str, ...]:
        sign = ">=" if self.at_least else "<="
        return (
            self.what,
            self.floor,
            self.ours,
            f"{self.value:.2f} {self.unit}",
            f"{sign} {self.goal:g} {self.unit}",
            "yes" if self.is_reached else "NO",
        )


def ms(seconds: list[float]) -> str:
    """The median with its spread, for people."""
    return f"{median(seconds) * 1e3:.1f} ms [{min(seconds) * 1e3:.1f}..{max(seconds) * 1e3:.1f}]"


def table(rows: list[Row], indent: str = "") -> str:
    head = ("what", "floor", "ours", "measured", "goal", "reached")
    lines = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
