"""How far Google's names can lead to this server: filled in by google_listener.py, read before each launch.

It may assume one event loop. A launch waits until it is known: on a home's first start certificates are made.
"""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class GoogleRedirect:
    roots: str = ""  # the file of roots that programs are to trust; empty: the names cannot be served
    address: str = ""  # of this machine's loopback, where they are served to processes; empty: nowhere
    fault: str = "nobody serves them"  # why the one or the other is empty
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.settled.set()  # until somebody begins to serve them
