"""Whether Google's names can lead to this server: serving/google_listener.py fills it in, launches read it.

It belongs to one event loop. A launch waits until `settled`: on a home's first start certificates are made.
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
