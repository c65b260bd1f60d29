"""Nothing listens beside the server of the method table: another would have no permissions."""

import ast
from pathlib import Path

import trainshed

LISTENING = {
    "HTTPServer",
    "TCPServer",
    "ThreadingHTTPServer",
    "Starlette",
    "create_server",
    "create_unix_server",
    "start_server",
    "start_unix_server",
}
ALLOWED = {
    "serving.py",  # serves the table, at its port and at the loopback ports of containers
    "loopback_server.py",  # hands these sockets to it, and passes bytes on to a store's own port
}


def servers_in(text: str) -> set[str]:
    return {
        name
        for node in ast.walk(ast.parse(text))
        if (name := getattr(node, "attr", None) or getattr(node, "id", None)) in LISTENING
    }


def test_only_the_server_of_the_table_listens():
    folder = Path(trainshed.__file__).parent
    found = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if servers_in(path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED


def test_a_server_of_ones_own_is_seen():
    assert servers_in("import asyncio\nasync def f(): await asyncio.start_server(g)") == {"start_server"}
    assert servers_in("http.server.HTTPServer(('', 1), H)") == {"HTTPServer"}
