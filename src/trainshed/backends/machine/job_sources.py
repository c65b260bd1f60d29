"""Where backends of this machine get what programs find. The assembly makes it; the backends read it."""

from dataclasses import dataclass

from trainshed.core.code_port import CodeStore
from trainshed.core.layer_port import Supplies
from trainshed.core.view import ViewSource


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSources:
    """Each is None where a server has none: a job that needs it is told so."""

    code: CodeStore | None = None  # the folders that people upload
    buckets: ViewSource | None = None  # what programs see below /gcs
    packages: Supplies | None = None  # what is installed on top of images; runtimes have their own
