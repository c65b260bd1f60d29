"""A conversation over a WebSocket, made of what the server's framework gives: a handler's Talk, held.

The handler has checked who comes; here the connection is accepted, and closed when the talk is over.
"""

import contextlib

from starlette.types import Receive, Send

from trainshed.api.call import SocketAnswer


class WebSocketChannel:
    """Implements `api.call.SocketChannel`."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send

    async def hear(self) -> bytes | str | None:
        message = await self._receive()
        if message["type"] != "websocket.receive":
            return None
        data: bytes | str | None = message.get("bytes")
        return data if data is not None else message.get("text", "")

    async def say(self, data: bytes | str) -> bool:
        key = "text" if isinstance(data, str) else "bytes"
        try:
            await self._send({"type": "websocket.send", key: data})
        except OSError:
            return False
        return True


async def serve_socket(answer: SocketAnswer, receive: Receive, send: Send) -> None:
    try:
        await send({"type": "websocket.accept", "subprotocol": answer.protocol})
    except OSError:  # it went away before
        return
    await answer.hold(WebSocketChannel(receive, send))
    with contextlib.suppress(OSError, RuntimeError):  # it was closed from the other side
        await send({"type": "websocket.close", "code": 1000})
