"""What `create` was asked for: flags and file together, as the CustomJob to send. Pure.

As with gcloud, pools given as flags take the place of all the file's, and what a flag says wins over the
file. Beyond gcloud: the file may be a whole job, {displayName, jobSpec}, and its name is then the job's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from trainshed.cli.ai.given import Key, with_flags, with_labels_and_key
from trainshed.cli.ai.listing import words
from trainshed.cli.ai.local_package import LocalPackage
from trainshed.cli.ai.pools import PoolProgram, pools
from trainshed.cli.failure import CommandFailed
from trainshed.cli.job_file import JobFile
from trainshed.client import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomJobWords:
    display_name: str | None = None
    pool_specs: Sequence[str] = ()
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    python_package_uris: Sequence[str] = ()
    labels: Sequence[str] = ()
    kms: Key = field(default_factory=Key)
    network: str | None = None
    service_account: str | None = None
    persistent_resource_id: str | None = None
    enable_web_access: bool | None = None
    enable_dashboard_access: bool | None = None
    local: LocalPackage | None = None

    def body(self, file: JobFile | None, parent: tuple[str, str], now: datetime) -> Json:
        """The job to send. `parent` is (project, region)."""
        body = dict(file.body) if file else {}
        spec = self._spec(body.get("jobSpec"), file.name if file else "")
        body |= {"displayName": self._name(body, now), "jobSpec": spec}
        return with_labels_and_key(body, self.labels, self.kms, parent)

    def _name(self, body: Json, now: datetime) -> str:
        return self.display_name or body.get("displayName") or f"custom-job-{now:%Y%m%d-%H%M%S}"

    def _spec(self, value: object, name: str) -> Json:
        if value is not None and not isinstance(value, dict):
            raise CommandFailed(f"{name}: jobSpec must hold the fields of a job, such as workerPoolSpecs")
        spec = cast(Json, value or {})
        given: Json = {
            "network": self.network,
            "serviceAccount": self.service_account,
            "persistentResourceId": self.persistent_resource_id,
            "enableWebAccess": self.enable_web_access,
            "enableDashboardAccess": self.enable_dashboard_access,
        }
        if self.pool_specs:
            given["workerPoolSpecs"] = pools(self.pool_specs, self._program())
        if self.local is not None and self.local.requirements:
            given["requirements"] = list(self.local.requirements)
        return with_flags(spec, given)

    def _program(self) -> PoolProgram:
        return PoolProgram(
            command=_all(self.command, "--command"),
            args=_all(self.args, "--args"),
            packages=_all(self.python_package_uris, "--python-package-uris"),
            local=self.local,
        )

    @property
    def unused(self) -> list[str]:
        """The flags that speak of pools given as flags, where none is."""
        named = {
            "--command": self.command,
            "--args": self.args,
            "--python-package-uris": self.python_package_uris,
        }
        return [flag for flag, texts in named.items() if texts and not self.pool_specs]


def _all(texts: Sequence[str], flag: str) -> list[str]:
    return [word for text in texts for word in words(text, flag)]
