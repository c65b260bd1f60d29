"""HTML and SVG as text in which foreign words stay words. `charts.py` and `page.py` build with it.

Only `tag` makes Markup. Whatever else it is given, as a child or as an attribute, it escapes.
"""

import html
import re

_CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
_TURNING = r"\u202a-\u202e\u2066-\u2069"  # makes what follows read in another order than it is
_UNSEEN = re.compile(f"[{_CONTROL}{_TURNING}]")


class Markup(str):
    """Text that is safe to put into a page as it is."""

    __slots__ = ()


def escaped(text: object) -> Markup:
    return Markup(html.escape(_UNSEEN.sub("\ufffd", str(text)), quote=True))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element. `class_` is written class; other underscores become hyphens. None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else escaped(child) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def joined(*pieces: Markup) -> Markup:
    return Markup("\n".join(pieces))


def _short(value: object) -> object:
    """Places in a drawing need no more than a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
