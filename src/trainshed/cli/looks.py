"""When to look at jobs again: soon after the server hinted that one has changed, and now and then without."""

import time
from collections.abc import Iterator
from threading import Event, Thread

from trainshed.client import Client
from trainshed.client.errors import ClientError

TOGETHER = 0.2  # seconds: changes often come several at once
AGAIN = 2.0  # seconds before the server is asked for hints again


def looks(client: Client, every: float, location: str | None = None) -> Iterator[None]:
    """Yields at once, after each change, and after that many seconds without one. Without end.

    Hints come on a connection of their own. Who looks meets whatever is wrong with the server, and says so.
    """
    changed = Event()
    Thread(target=_listen, args=(client.another(), location, changed), daemon=True).start()
    while True:
        yield
        if changed.wait(every):
            time.sleep(min(TOGETHER, every))
            changed.clear()


def _listen(client: Client, location: str | None, changed: Event) -> None:
    while True:
        try:
            for _ in client.watch(location=location):
                changed.set()
        except ClientError:
            time.sleep(AGAIN)
