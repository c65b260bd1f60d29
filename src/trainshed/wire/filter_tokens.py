"""Splits a filter text, of logs or of lists of jobs, into tokens. Both filter languages share the spelling.

The filter parsers give tokens their meaning: `AND` is a WORD here. A path such as `labels."a/b".c` is several
adjacent tokens (`labels.`, `"a/b"`, `.c`); `path_at` joins them. Text that cannot be split raises `Invalid`
with the position, and nothing else is raised. Comments (`-- to the end of the line`) are skipped.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from trainshed.core.errors import Invalid, Violation

LONGEST = 20_000  # characters: what Cloud Logging takes


class TokenKind(StrEnum):
    WORD = "word"  # bare: a keyword, a path or part of one, a value
    STRING = "string"  # quoted; its text is what stands between the quotes, escapes resolved
    OPERATOR = "operator"  # = != > >= < <= : =~ !~
    MINUS = "-"  # the short form of NOT, directly before a term
    OPEN = "("
    CLOSE = ")"
    COMMA = ","
    END = "end"  # always the last token


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    position: int  # of its first character, counted from 0
    end: int  # just behind its last character

    def is_word(self, word: str) -> bool:
        """Whether this is that bare word. Keywords are upper case; a quoted keyword is only a text."""
        return self.kind is TokenKind.WORD and self.text == word


_TOKEN = re.compile(
    r"""(?P<space>(?:\s+|--[^\n]*)+)
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | '(?P<single>(?:[^'\\]|\\.)*)'
      | (?P<operator>=~|!~|!=|>=|<=|=|>|<|:)
      | (?P<open>\()
      | (?P<close>\))
      | (?P<comma>,)
      | (?P<minus>-(?=[^\s=<>!:~,)]))
      | (?P<word>[^\s"'()=<>!:~,]+)""",
    re.VERBOSE | re.DOTALL,
)
# Directly behind an operator a minus belongs to a number, and the colons of an unquoted time to the time.
_VALUE = re.compile(
    r"""\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)? | [^\s"'()=<>!:~,]+""",
    re.VERBOSE,
)
_SIMPLE = {
    "operator": TokenKind.OPERATOR,
    "open": TokenKind.OPEN,
    "close": TokenKind.CLOSE,
    "comma": TokenKind.COMMA,
    "minus": TokenKind.MINUS,
    "word": TokenKind.WORD,
}

_ESCAPE = re.compile(
    r"\\(?:([0-3][0-7]{2})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_LETTERS = dict(zip("abfnrtv\\\"'", "\a\b\f\n\r\t\v\\\"'", strict=True))


def refuse(sentence: str, position: int, field: str = "filter") -> Invalid:
    """The error for a filter that cannot be understood, with the position counted from 1, as people do."""
    return Invalid((Violation(field, f"{sentence} (at character {position + 1} of the filter)"),))


def tokens(text: str) -> list[Token]:
    """All tokens of the text in order, the last of kind END."""
    if len(text) > LONGEST:
        raise refuse(f"The filter is {len(text)} characters long; at most {LONGEST} are allowed", LONGEST)
    result: list[Token] = []
    at = 0
    while at < len(text):
        after_operator = bool(result) and result[-1].kind is TokenKind.OPERATOR
        if after_operator and (value := _VALUE.match(text, at)):
            result.append(Token(TokenKind.WORD, value[0], at, value.end()))
            at = value.end()
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise refuse(_complaint(text[at]), at)
        group = match.lastgroup or ""
        if group in ("double", "single"):
            result.append(Token(TokenKind.STRING, _unescape(match[group]), at, match.end()))
        elif group != "space":
            result.append(Token(_SIMPLE[group], match[0], at, match.end()))
        at = match.end()
    result.append(Token(TokenKind.END, "", len(text), len(text)))
    return result


def path_at(all_tokens: list[Token], start: int) -> tuple[tuple[str, ...], int]:
    """The parts of the path (or bare word) at that token, and the number of the token after it.

    A word alone is a path of one or more parts; quoted parts join where they touch a dot.
    """
    parts: list[str] = []
    text, number = "", start
    joined = True  # whether the next token would continue the path
    while joined and all_tokens[number].kind in (TokenKind.WORD, TokenKind.STRING):
        token = all_tokens[number]
        if token.kind is TokenKind.STRING:
            parts.append(token.text)
            dotted = False
        else:
            text = token.text[1:] if number > start and token.text.startswith(".") else token.text
            dotted = text.endswith(".")
            parts.extend(text.removesuffix(".").split("."))
        number += 1
        following = all_tokens[number]
        touches = following.position == token.end
        joined = touches and (
            (dotted and following.kind in (TokenKind.STRING, TokenKind.WORD))
            or (
                token.kind is TokenKind.STRING
                and following.kind is TokenKind.WORD
                and following.text.startswith(".")
            )
        )
    return tuple(parts), number


def _complaint(character: str) -> str:
    if character in "\"'":
        return f"The quotation mark {character} is never closed"
    return f"The character {character!r} has no meaning here"


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_resolve, text) if "\\" in text else text


def _resolve(match: re.Match[str]) -> str:
    octal, *hexadecimal, letter = match.groups()
    if octal:
        return chr(int(octal, 8))
    for digits in hexadecimal:
        if digits:
            number = int(digits, 16)
            return chr(number) if number <= 0x10FFFF else match[0]
    # An escape nobody knows keeps its backslash: "\.py$" is then the regular expression people mean.
    return _LETTERS.get(letter, match[0])
