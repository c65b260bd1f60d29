"""Makes the names in a folder durable. Adapters call it after they have made or renamed a file."""

import os


def sync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
