"""HTTP as TensorFlow speaks it to Google's names: the server's, and a length that is told twice forgiven.

Where it sends nothing TensorFlow says `Content-Length: 0` and `Transfer-Encoding: identity`, which means
nothing; what it uploads has a length and is chunked, which counts more. Elsewhere such requests are refused,
since a proxy in front could take the one for the other. In front of this listener there is no proxy.
"""

import re

from trainshed.serving.http_protocol import BoundedHttp

_END = b"\r\n\r\n"
_IDENTITY = re.compile(rb"\r\ntransfer-encoding:[ \t]*identity[ \t]*(?=\r\n)", re.I)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.I)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*\d+[ \t]*(?=\r\n)", re.I)


class ForgivingHttp(BoundedHttp):
    _in_message = False

    def on_message_begin(self) -> None:
        self._in_message = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._in_message = False
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        if not self._in_message and (end := data.find(_END)) >= 0:  # a head, which curl sends in one piece
            data = told_once(data[: end + 2]) + data[end + 2 :]
        super().data_received(data)


def told_once(head: bytes) -> bytes:
    """The head of a request with one length: none of several is taken for another."""
    if _CHUNKED.search(head):
        return _LENGTH.sub(b"", head)
    return _IDENTITY.sub(b"", head)
