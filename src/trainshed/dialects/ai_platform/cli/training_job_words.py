"""What `submit training` was asked for: flags and file together, as the job to send. Pure.

As with gcloud, what a flag says wins over the file, field by field; labels and arguments as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.ai.listing import pairs
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.job_file import JobFile, folded
from trainshed.client import Json

INPUT = "trainingInput"
TIERS = ("BASIC", "BASIC_GPU", "BASIC_TPU", "CUSTOM", "PREMIUM_1", "STANDARD_1")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJobWords:
    job: str
    region: str | None = None  # as the flag says
    args: Sequence[str] | None = None
    job_dir: str | None = None
    module_name: str | None = None
    scale_tier: str | None = None
    runtime_version: str | None = None
    python_version: str | None = None
    service_account: str | None = None
    network: str | None = None
    enable_web_access: bool | None = None
    use_chief_in_tf_config: bool | None = None
    tpu_tf_version: str | None = None
    kms_key: str = ""
    labels: Sequence[str] = ()
    roles: Json = field(default_factory=dict[str, Any])  # as `roles.fields` words them

    def body(self, file: JobFile | None, packages: Sequence[str], region: str) -> Json:
        """The job to send. `region` is where to, if neither flag nor file say."""
        top = dict(file.body) if file else {}
        fields = _taken(top, INPUT)
        if fields is not None and not isinstance(fields, dict):
            raise CommandFailed(f"{file.name if file else ''}: {INPUT} must hold fields, such as scaleTier")
        asked = _named(cast(Json, fields or {}))
        asked = _merged(asked, self._given(packages))
        asked.setdefault("region", region)
        _check(asked)
        _taken(top, "jobId")
        labels: dict[str, str] = {}
        for text in self.labels:
            labels |= pairs(text, "--labels")
        if labels:
            _taken(top, "labels")
            top["labels"] = labels
        return {**top, "jobId": self.job, INPUT: asked}

    def check(self) -> None:
        """What the flags by themselves cannot mean."""
        image = cast(Json, self.roles.get("masterConfig", {})).get("imageUri")
        if image and self.runtime_version:
            raise Misuse("Only one of --master-image-uri, --runtime-version can be set.")
        if self.scale_tier and tier(self.scale_tier) == "CUSTOM" and "masterType" not in self.roles:
            raise Misuse("--master-machine-type is required if scale-tier is set to `CUSTOM`.")

    def _given(self, packages: Sequence[str]) -> Json:
        fields: Json = {
            "region": self.region,
            "args": list(self.args) if self.args is not None else None,
            "jobDir": self.job_dir,
            "pythonModule": self.module_name,
            "packageUris": list(packages) or None,
            "scaleTier": tier(self.scale_tier) if self.scale_tier else None,
            "runtimeVersion": self.runtime_version,
            "pythonVersion": self.python_version,
            "serviceAccount": self.service_account,
            "network": self.network,
            "enableWebAccess": self.enable_web_access,
            "useChiefInTfConfig": self.use_chief_in_tf_config,
            "encryptionConfig": {"kmsKeyName": self.kms_key} if self.kms_key else None,
            **self.roles,
        }
        if self.tpu_tf_version:
            fields["workerConfig"] = {**fields.get("workerConfig", {}), "tpuTfVersion": self.tpu_tf_version}
        return {name: value for name, value in fields.items() if value is not None}


def tier(text: str) -> str:
    """PREMIUM_1 and premium-1 are one."""
    result = text.upper().replace("-", "_")
    if result not in TIERS:
        choices = ", ".join(item.lower().replace("_", "-") for item in TIERS)
        raise Misspelt("--scale-tier", f"Invalid choice: '{text}'. Valid choices are [{choices}].")
    return result


def _check(asked: Json) -> None:
    """What only flags and file together show."""
    config = asked.get("masterConfig")
    image = cast(Json, config).get("imageUri") if isinstance(config, dict) else None
    if not image and not asked.get("packageUris"):
        raise CommandFailed(
            "Non-custom jobs must have packages.",
            ["give --package-path or --packages with --module-name; or --master-image-uri"],
        )


def _named(fields: Json) -> Json:
    """The fields under the names the API writes, for those that flags have a say in."""
    known = {folded(name): name for name in (*_FIELDS, "imageUri", "acceleratorConfig", "tpuTfVersion")}
    return {known.get(folded(name), name): value for name, value in fields.items()}


_FIELDS = (
    *("region", "args", "jobDir", "pythonModule", "packageUris", "scaleTier", "runtimeVersion"),
    *("pythonVersion", "serviceAccount", "network", "enableWebAccess", "useChiefInTfConfig"),
    *("encryptionConfig", "masterConfig", "workerConfig", "parameterServerConfig"),
    *("masterType", "workerType", "parameterServerType", "workerCount", "parameterServerCount"),
)


def _merged(fields: Json, given: Json) -> Json:
    """A role's image may come from the file and its accelerators from a flag."""
    result = dict(fields)
    for name, value in given.items():
        below = result.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            result[name] = {**_named(cast(Json, below)), **cast(Json, value)}
        else:
            result[name] = value
    return result


def _taken(fields: Json, name: str) -> object:
    """What is under a name, however it is written, taken out."""
    result: object = None
    for key in [key for key in fields if folded(key) == folded(name)]:
        result = fields.pop(key)
    return result
