"""HTTP as TensorFlow speaks it to Google's names: uvicorn's, and one header forgiven.

Where it sends nothing TensorFlow says so twice: `Content-Length: 0` and `Transfer-Encoding: identity`. The
second means nothing, and together they are what a request is refused for everywhere else, since a proxy in
front could take the one for the other. In front of this listener there is no proxy.
"""

import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_END = b"\r\n\r\n"
_IDENTITY = re.compile(rb"\r\ntransfer-encoding:[ \t]*identity[ \t]*(?=\r\n)", re.I)


class ForgivingHttp(HttpToolsProtocol):
    _in_message = False

    def on_message_begin(self) -> None:
        self._in_message = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._in_message = False
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        if not self._in_message and (end := data.find(_END)) >= 0:  # a head, which curl sends in one piece
            data = _IDENTITY.sub(b"", data[: end + 2]) + data[end + 2 :]
        super().data_received(data)
