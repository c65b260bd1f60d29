"""What `hp-tuning-jobs create` was asked for: flags and file together, as the tuning job to send. Pure.

As with gcloud, a flag wins over the file, and an absent count is 1. Beyond gcloud: the file may have the
counts inside studySpec, as documents print them, and scaleType inside the value spec; both are put where they
belong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from trainshed.cli.ai.given import Key, with_flags, with_labels_and_key
from trainshed.cli.failure import CommandFailed
from trainshed.client import Json
from trainshed.yaml_document import folded

COUNTS = ("maxTrialCount", "parallelTrialCount", "maxFailedTrialCount")
TOP = (
    "displayName",
    "labels",
    "encryptionSpec",
    "studySpec",
    "trialJobSpec",
    "seed",
    "initialTrials",
    *COUNTS,
)
EXAMPLE = """studySpec:
  metrics:
  - {metricId: accuracy, goal: MAXIMIZE}
  parameters:
  - parameterId: lr
    doubleValueSpec: {minValue: 0.001, maxValue: 0.1}
    scaleType: UNIT_LOG_SCALE
maxTrialCount: 20
parallelTrialCount: 4
trialJobSpec:
  workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 1
    containerSpec: {imageUri: "trainshed/python:3", command: [python, train.py]}"""
_TOP = {folded(name): name for name in TOP}
_VALUE_SPECS = {folded(f"{kind}ValueSpec") for kind in ("double", "integer", "categorical", "discrete")}


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningWords:
    display_name: str | None = None
    max_trial_count: int | None = None
    parallel_trial_count: int | None = None
    algorithm: str | None = None
    labels: Sequence[str] = ()
    kms: Key = field(default_factory=Key)
    network: str | None = None
    service_account: str | None = None
    enable_web_access: bool | None = None
    enable_dashboard_access: bool | None = None

    def body(self, name: str, fields: Json, parent: tuple[str, str], now: datetime) -> Json:
        """The tuning job to send. `name` is the file's; `parent` is (project, region)."""
        body = placed_fields(name, fields)
        counts = {"maxTrialCount": self.max_trial_count, "parallelTrialCount": self.parallel_trial_count}
        for count, flag in counts.items():
            body[count] = flag if flag is not None else body.get(count, 1)
        body["displayName"] = self.display_name or body.get("displayName") or f"hp-tuning-{now:%Y%m%d-%H%M%S}"
        if self.algorithm:
            body["studySpec"] = with_flags(body["studySpec"], {"algorithm": _constant(self.algorithm)})
        body["trialJobSpec"] = with_flags(
            body["trialJobSpec"],
            {
                "network": self.network,
                "serviceAccount": self.service_account,
                "enableWebAccess": self.enable_web_access,
                "enableDashboardAccess": self.enable_dashboard_access,
            },
        )
        return with_labels_and_key(body, self.labels, self.kms, parent)


def placed_fields(name: str, fields: Json) -> Json:
    """The file's fields as the API has them, each where it belongs."""
    body: Json = {_TOP.get(folded(key), key): value for key, value in fields.items()}
    for part in ("studySpec", "trialJobSpec"):
        if not isinstance(body.get(part), dict):
            raise CommandFailed(
                f"{name} has no {part}: {', '.join(fields) or 'nothing'}",
                ["a small tuning job reads:", *EXAMPLE.splitlines()],
            )
    study: Json = dict(body["studySpec"])
    for key in list(study):
        if (count := _TOP.get(folded(key))) in COUNTS:
            value = study.pop(key)
            body.setdefault(str(count), value)
    for key, value in study.items():
        if folded(key) == "parameters" and isinstance(value, list):
            study[key] = [_parameter(item) for item in cast("list[Any]", value)]
    return {**body, "studySpec": study}


def _parameter(given: Any) -> Any:
    """The parameter with its scaleType beside the value spec; the same for those below it."""
    if not isinstance(given, dict):
        return given
    result: Json = {}
    scale: Json = {}
    for key, value in cast(Json, given).items():
        if folded(key) in _VALUE_SPECS and isinstance(value, dict):
            spec = cast(Json, value)
            inside = [item for name, item in spec.items() if folded(name) == "scaletype"]
            scale = {"scaleType": inside[0]} if inside else scale
            result[key] = {name: item for name, item in spec.items() if folded(name) != "scaletype"}
        elif folded(key) == "conditionalparameterspecs" and isinstance(value, list):
            result[key] = [_condition(item) for item in cast("list[Any]", value)]
        else:
            result[key] = value
    return result if any(folded(key) == "scaletype" for key in result) else {**result, **scale}


def _condition(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    return {
        key: _parameter(value) if folded(key) == "parameterspec" else value
        for key, value in cast(Json, given).items()
    }


def _constant(text: str) -> str:
    """grid-search as the API spells it."""
    return text.upper().replace("-", "_")
