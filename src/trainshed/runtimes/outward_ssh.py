"""Connects ssh through the proxy of outward_proxy.py: ssh starts it as its ProxyCommand, for pip's git.

    python -I -S outward_ssh.py PROXY_PORT HOST PORT

It depends on nothing but Python. It ends with 1 and the proxy's own sentence where that refuses.
"""

import os
import socket
import sys
import threading


def main(proxy: str, host: str, port: str) -> int:
    link = socket.create_connection(("127.0.0.1", int(proxy)))
    link.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n") and (byte := link.recv(1)):
        head += byte
    line = head.partition(b"\r\n")[0].decode("latin-1")
    if not line.startswith("HTTP/1.1 200 "):
        print(f"ERROR: {line.partition(' ')[2] or 'the proxy is gone'}", file=sys.stderr, flush=True)
        return 1
    threading.Thread(target=_send, args=(link,), daemon=True).start()
    while piece := link.recv(1 << 16):
        while piece:
            piece = piece[os.write(1, piece) :]
    return 0


def _send(link: socket.socket) -> None:
    while piece := os.read(0, 1 << 16):
        link.sendall(piece)
    link.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:4]))
