"""The client for Python programs: submit and follow jobs over HTTP, with nothing but the standard library.

    from trainshed.client import Client, discover

    client = Client.of(discover())
    job = client.submit("digits", {"workerPoolSpecs": [...]})
    for line in client.tail(job["name"], follow=True):
        print(line["task"], line["text"])

It speaks only HTTP: it may run where no server is installed, and never imports the server's parts. Each name
is imported when it is first used, and what submits a job imports next to nothing (docs/adr/0014).
"""

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from trainshed.client.api import Client
    from trainshed.client.connection import Json
    from trainshed.client.discovery import Target, discover
    from trainshed.client.errors import ApiError, ApiViolation, ClientError, Interrupted, Unreachable

_HOMES = {
    "ApiError": "errors",
    "Client": "api",
    "ClientError": "errors",
    "Interrupted": "errors",
    "Json": "connection",
    "Target": "discovery",
    "Unreachable": "errors",
    "ApiViolation": "errors",
    "discover": "discovery",
}

__all__ = [
    "ApiError",
    "ApiViolation",
    "Client",
    "ClientError",
    "Interrupted",
    "Json",
    "Target",
    "Unreachable",
    "discover",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = __import__(f"{__name__}.{_HOMES[name]}", fromlist=[name])
    result: object = getattr(home, name)
    globals()[name] = result
    return result
