"""The shares that were set by the API, in a file of the home. Used where the setting `shares` names no file.

`service/shares.py` sets them, the scheduler asks for them at each cycle. They are on the disk before they
count; a kill at any line leaves the file before or the file after. A server without shares has no such file.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from trainshed.core.errors import Invalid, Unavailable
from trainshed.core.queue.share import ShareTree
from trainshed.disk.folder_sync import write_durably
from trainshed.settings.share_file import read_shares
from trainshed.settings.values import SettingsError


class StoredShares:
    """Implements `core.ports.ShareStore`."""

    def __init__(self, path: Path, accelerators: Mapping[str, object]) -> None:
        """Raises SettingsError where the file cannot be used."""
        self._path, self._accelerators = path, accelerators
        self._tree: ShareTree | None = None
        try:
            self._tree = self._read(json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError, AttributeError, Invalid) as error:
            raise SettingsError(
                f"The shares in {path} cannot be read: {error}. Remove or mend it."
            ) from error

    def __call__(self) -> ShareTree | None:
        return self._tree

    def put(self, document: Mapping[str, object], check: Callable[[ShareTree | None], None]) -> None:
        tree = self._read(document)
        check(tree)
        try:
            if tree is None:
                self._path.unlink(missing_ok=True)
            else:
                write_durably(self._path, json.dumps(document, indent=1))
        except OSError as error:
            raise Unavailable(
                f"The shares cannot be written to {self._path}: {error.strerror or error}."
            ) from error
        self._tree = tree

    def _read(self, document: Mapping[str, object]) -> ShareTree | None:
        tree = read_shares(document, self._accelerators)
        return tree if document.get("share") else None
