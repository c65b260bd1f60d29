"""gcloud's lists and dictionaries on the command line: `a,b`, `k=v,l=w`, `^@@^a@@b,c` for values with commas.

Pure text to values; what a key may be is told by whoever asks.
"""

from trainshed.cli.ai.grammar import Misspelt

CARET = "^"


def words(text: str, flag: str) -> list[str]:
    """The parts of a list. `^D^` at its beginning makes D the delimiter; an empty text has no parts."""
    delimiter = ","
    if text.startswith(CARET) and CARET in text[1:]:
        delimiter, _, text = text[1:].partition(CARET)
        if not delimiter:
            raise Misspelt(flag, "between the two ^ at the beginning stands the delimiter, as in ^@@^a@@b")
    return text.split(delimiter) if text else []


def pairs(text: str, flag: str) -> dict[str, str]:
    """The entries of a dictionary; of a key given twice the last holds. A trailing delimiter is harmless."""
    result: dict[str, str] = {}
    for part in words(text, flag):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not (key and equals):
            raise Misspelt(flag, f"Bad syntax for dict arg: [{part}]; it should read KEY=VALUE,KEY=VALUE")
        result[key.strip()] = value
    return result
