"""The headers that keep browsers from running what an answer carries. `api/app.py` puts them on every answer.

Buckets, code folders and logs hold whatever somebody stored, a web page too. Served from this address as a
page it could call the API as a page of ours. So every answer is sealed: its type is not guessed, it runs in
a sandbox without an origin, nobody may frame or embed it, and what is neither JSON nor text of ours is
saved, not shown. Only an answer with a policy of its own, a page of ours, is shown as a page.
"""

from starlette.types import Message, Send

POLICY = b"content-security-policy"
SEAL = (
    (b"x-content-type-options", b"nosniff"),
    (POLICY, b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_SAVED = (b"content-disposition", b"attachment")
_SHOWN = (b"application/json", b"application/xml", b"text/plain")  # stored bytes never come without _SAVED
_STARTS = ("http.response.start", "websocket.http.response.start")


def sealing(send: Send) -> Send:
    """Sends what it is given, with the headers above where the answer has none of that name."""

    async def sealed(message: Message) -> None:
        if message["type"] in _STARTS:
            message = {**message, "headers": with_seal(message.get("headers", []))}
        await send(message)

    return sealed


def with_seal(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    given = {name.lower(): value for name, value in headers}
    result = [*headers, *(row for row in SEAL if row[0] not in given)]
    kind = given.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if POLICY not in given and kind and kind not in _SHOWN and _SAVED[0] not in given:
        result.append(_SAVED)
    return result
