"""Makes files and the names in a folder durable. Adapters call it."""

import os
from pathlib import Path


def sync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(file: Path, text: str) -> None:
    """As a whole or not at all, for the owner alone: a kill leaves the file before or the one after."""
    draft = file.with_name(f"{file.name}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(handle)
        draft.rename(file)
        sync_folder(str(file.parent))
    except OSError:
        draft.unlink(missing_ok=True)
        raise
