"""Use case of shares: to see what each has and uses, and to set them where no file of the settings does."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainshed.core.errors import Forbidden
from trainshed.core.ports import ShareStore
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.share_report import ShareRow


@dataclass(slots=True)
class ShareService:
    rows: Callable[
        [], Awaitable[tuple[ShareRow, ...]]
    ]  # of the shares as they are used now; none where none are set
    stored: ShareStore
    file: Path | None  # that the settings name: then nothing else is used
    hint_scheduler: Callable[[], None]
    check: Callable[[ShareTree | None], None]  # raises Invalid where less is left than is reserved

    def set(self, document: Mapping[str, object]) -> None:
        """These shares in place of all that were set. Raises Invalid with every violation."""
        if self.file is not None:
            raise Forbidden(
                f"The shares of this server are those of --shares {self.file}: change that file. "
                "To set shares by the API start the server without --shares."
            )
        self.stored.put(document, self.check)
        self.hint_scheduler()
