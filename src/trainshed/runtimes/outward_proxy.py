"""The proxy through which pip reaches the network: it connects only to addresses that lead out.

    python -I -c ... HOST:PORT HOST ...        the operator's own places, which may be anywhere

`Outward` (outward.py) starts it as a process of its own, which ends when its standard input is closed. Pip,
the pip that it starts to build a package, and git all ask this process for connections, for redirects and for
what packages require too. It resolves each name itself, asks `core/supplies/inward.py`, and connects to the
addresses it asked about, so a name that means something else a moment later gains nothing.
"""

import asyncio
import contextlib
import os
import sys
from urllib.parse import urlsplit

from trainshed.core.supplies.inward import inward

LONGEST_HEAD = 1 << 16  # bytes
CONNECTING = 60.0  # seconds
_PIECE = 1 << 16
_END = b"\r\n\r\n"


class ProxyRefusal(Exception):
    """With the status and the reason of the answer; pip repeats the reason."""


class OutwardProxy:
    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed  # HOST or HOST:PORT, small letters

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client: one request, then bytes in both directions."""
        try:
            head = await reader.readuntil(_END)
            host, port, rest = _asked(head)
            there, back = await self._connect(host, port)
        except ProxyRefusal as refusal:
            writer.write(f"HTTP/1.1 {refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        else:
            if rest:
                back.write(rest)
            else:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            sending = asyncio.create_task(_pump(reader, back))
            await _pump(there, writer)
            sending.cancel()
            await _closed(back)
        await _closed(writer)

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        try:
            entries = await loop.getaddrinfo(host, port, type=1)  # SOCK_STREAM
        except (OSError, UnicodeError) as error:
            raise ProxyRefusal(f"502 The name {host} is not known here: {error}") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        if not {host.lower(), f"{host.lower()}:{port}"} & self._allowed and (wrong := inward(addresses)):
            raise ProxyRefusal(f"403 {host} leads to {wrong}, which is inside the server's own network")
        trouble: Exception | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECTING):
                    return await asyncio.open_connection(address, port)
            except OSError as error:
                trouble = error
        raise ProxyRefusal(f"502 {host} cannot be reached: {trouble}") from trouble


def _asked(head: bytes) -> tuple[str, int, bytes]:
    """Host, port, and the request to pass on; none for CONNECT, whose bytes go through as they are."""
    line, _, fields = head.decode("latin-1").partition("\r\n")
    try:
        method, target, version = line.split(" ")
        place = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = place.hostname, place.port
    except ValueError as error:
        raise ProxyRefusal("400 This proxy does not understand the request") from error
    if not host or (method != "CONNECT" and place.scheme != "http"):
        raise ProxyRefusal("400 This proxy does not understand the request")
    if method == "CONNECT":
        return host, port or 443, b""
    path = f"{place.path or '/'}{f'?{place.query}' if place.query else ''}"
    # One request a connection: the next may be for another host, and is looked at anew.
    own = ("connection:", "proxy-", "keep-alive:")
    kept = [field for field in fields.split("\r\n") if field and not field.lower().startswith(own)]
    text = "\r\n".join((f"{method} {path} {version}", *kept, "Connection: close", "", ""))
    return host, port or 80, text.encode("latin-1")


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(_PIECE):
            sink.write(piece)
            await sink.drain()
        sink.write_eof()
    except OSError:  # one side has gone: so the other goes
        sink.close()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _serve_until_let_go(allowed: frozenset[str]) -> None:
    proxy = OutwardProxy(allowed)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=LONGEST_HEAD)
    try:
        os.write(1, b"%d\n" % server.sockets[0].getsockname()[1])
    except BrokenPipeError:  # the server died in the meantime: nobody needs a proxy
        os._exit(0)
    while await asyncio.to_thread(os.read, 0, 4096):
        pass
    os._exit(0)


def main() -> None:
    """The program. Its first line of output is the port."""
    asyncio.run(_serve_until_let_go(frozenset(word.lower() for word in sys.argv[1:])))
