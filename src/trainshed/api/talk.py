"""Serves a SocketAnswer over a WebSocket. For `api/app.py`.

The handler has authenticated the caller. This module accepts the connection, and closes it at the end.
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
    except OSError:  # the client is gone already
        return
    await answer.hold(WebSocketChannel(receive, send))
    with contextlib.suppress(OSError, RuntimeError):  # the client closed it
        await send({"type": "websocket.close", "code": 1000})
