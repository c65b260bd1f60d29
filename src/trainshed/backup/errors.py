"""How a backup or a restore fails, beyond the errors of the core."""

from trainshed.core.errors import Conflict


class DamagedBackup(Conflict):
    """A backup is not as it was written: it is cut off, or bytes of it have changed."""

    def __init__(self, backup: object, how: str) -> None:
        super().__init__(f"The backup {backup} is damaged: {how}. Nothing was restored; use another backup.")
