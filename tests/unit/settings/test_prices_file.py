"""On which line a mistake in a file of prices is."""

import pytest

from trainshed.settings.prices_file import _line  # pyright: ignore[reportPrivateUsage]

TEXT = """currency = "EUR"
[budgets]
vision = 3

[[prices]]
cpu_hour = 1
[prices.gpu_hour]
"T 4" = 1
[[prices]]
spot.cpu_hour = 2
[[prices.hardware]]
years = 1
[[prices.hardware]]
years = 2
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("currency",), 1),
        (("budgets", "vision"), 3),
        (("prices", 0, "cpu_hour"), 6),
        (("prices", 0, "gpu_hour", "T 4"), 8),
        (("prices", 1, "from"), 9),
        (("prices", 1, "spot", "cpu_hour"), 10),
        (("prices", 1, "hardware", 0, "years"), 12),
        (("prices", 1, "hardware", 1, "years"), 14),
        (("prices", 1, "hardware", 1, "cpus"), 13),
        (("nothing",), 1),
    ],
)
def test_a_mistake_is_found_on_the_line_of_its_field_else_of_its_table(
    path: tuple[str | int, ...], line: int
):
    assert _line(TEXT, path) == line
