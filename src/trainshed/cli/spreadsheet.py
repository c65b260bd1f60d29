"""Cells of CSV files, which people open in spreadsheets. Whatever of ours writes CSV calls it."""

_FORMULAS = ("=", "+", "-", "@", "\t", "\n")


def cell(text: str) -> str:
    """A text that a spreadsheet would compute as a formula has a quote before it; a number has none."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # csv quotes only what ends its own lines
    if not text.startswith(_FORMULAS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
