"""The text of an account's token: a mark, the id of what is kept of it, and a secret. Pure."""

import re

MARK = "ts."  # every token of an account begins so; a server's token never does: it has no full stop
_TOKEN = re.compile(r"(ts\.[0-9a-f]{10}\.)[\w-]{43}")


def token_text(id: str, secret: str) -> str:
    return f"{MARK}{id}.{secret}"


def split_token(text: str) -> tuple[str, str]:
    id, _, secret = text.removeprefix(MARK).partition(".")
    return id, secret


def without_secret(text: str) -> str:
    """A text without the secrets of tokens in it."""
    return _TOKEN.sub(r"\1…", text) if MARK in text else text
