"""Nothing listens beside the server of the method table: another would have no permissions."""

import ast
from collections.abc import Iterable

import pytest

from tests.rules.source import PACKAGE, modules

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
    "serving/serve.py",  # serves the table, at its port and at the loopback ports of containers
    "serving/loopback_server.py",  # hands these sockets to it, and passes bytes on to a store's own port
    "cli/browser_login.py",  # waits on loopback for a word that the console brings, and gives out nothing
    "runtimes/outward_proxy.py",  # a process of its own for pip, which has nothing of the server
}


def servers_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        name
        for node in nodes
        if (name := getattr(node, "attr", None) or getattr(node, "id", None)) in LISTENING
    }


def test_only_the_server_of_the_table_listens():
    assert {module.name for module in modules(PACKAGE) if servers_in(module.nodes)} == ALLOWED


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("import asyncio\nasync def f(): await asyncio.start_server(g)", "start_server"),
        ("http.server.HTTPServer(('', 1), H)", "HTTPServer"),
    ],
)
def test_a_server_of_ones_own_is_seen(text: str, server: str):
    assert servers_in(ast.walk(ast.parse(text))) == {server}
