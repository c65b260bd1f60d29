"""What a backend needs to start one run of one replica: everything, and nothing to look up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from trainshed.core.fleet import Placement
from trainshed.core.names import RunKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    key: RunKey
    image: str
    command: tuple[str, ...]  # replaces the image's entry point where given
    args: tuple[str, ...]
    module: str = ""  # run as `python -m module` where given
    packages: tuple[str, ...] = ()
    code: str = ""  # the folder it finds as its working directory, by id (core.code)
    working_directory: str = ""  # where in the code it starts; at its top where empty
    requirements: tuple[str, ...] = ()  # lines of a requirements file, on top of the image
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    placement: Placement
    stdout: str  # the files its output goes straight into, opened for appending
    stderr: str
    grace: timedelta = timedelta(seconds=30)
    watched: bool = False  # where it stands may be asked while it runs
