"""The client for Python programs: submit and follow jobs over HTTP, with nothing but the standard library.

    from trainshed.client import Client, discover

    client = Client.of(discover())
    job = client.submit("digits", {"workerPoolSpecs": [...]})
    for line in client.tail(job["name"], follow=True):
        print(line["task"], line["text"])

It speaks only HTTP: it may run where no server is installed, and never imports the server's parts.
"""

from trainshed.client.api import Client
from trainshed.client.connection import Json
from trainshed.client.discovery import Target, discover
from trainshed.client.errors import ApiError, ClientError, Interrupted, Unreachable, Violation

__all__ = [
    "ApiError",
    "Client",
    "ClientError",
    "Interrupted",
    "Json",
    "Target",
    "Unreachable",
    "Violation",
    "discover",
]
