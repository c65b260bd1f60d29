"""What backends of this machine read and write for their runs. The assembly makes it; the backends use it."""

from dataclasses import dataclass

from trainshed.core.ports import RunFiles
from trainshed.core.supplies.code_port import CodeStore
from trainshed.core.supplies.layer_port import Supplies
from trainshed.core.view import ViewSource


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStorage:
    """All but `files` is None where a server has none: a job that needs it is told so."""

    files: RunFiles  # where output and reports go
    code: CodeStore | None = None  # the folders that people upload
    buckets: ViewSource | None = None  # what programs see below /gcs
    packages: Supplies | None = None  # what is installed on top of images; runtimes have their own
