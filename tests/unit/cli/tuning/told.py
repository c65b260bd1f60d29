"""Answers about studies as the server gives them, for a scripted server."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from tests.unit.client.scripted import Asked, Handler, failure

PARENT = "projects/local/locations/us-central1"
NAME = f"{PARENT}/hyperparameterTuningJobs/500"
SPEC = {
    "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
    "parameters": [
        {
            "parameterId": "lr",
            "doubleValueSpec": {"minValue": 1e-4, "maxValue": 0.1},
            "scaleType": "UNIT_LOG_SCALE",
        },
        {"parameterId": "net", "categoricalValueSpec": {"values": ["small", "big"]}},
    ],
}
CUSTOM_JOB = {
    "displayName": "train",
    "jobSpec": {
        "code": "c0de",
        "workerPoolSpecs": [
            {
                "replicaCount": "1",
                "machineSpec": {"machineType": "n1-standard-8"},
                "containerSpec": {
                    "imageUri": "trainshed/python:3",
                    "command": ["python", "train.py"],
                    "args": ["--epochs", "5", "--lr=0.025", "--net=big"],
                },
            }
        ],
    },
}


def trial(number: int, value: float | None, state: str = "SUCCEEDED", **more: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": str(number),
        "name": f"{NAME}/trials/{number}",
        "state": state,
        "parameters": [
            {"parameterId": "lr", "value": 0.01 * number},
            {"parameterId": "net", "value": "big" if number % 2 else "small"},
        ],
        "startTime": "2026-01-31T12:00:00Z",
        "customJob": f"{PARENT}/customJobs/{number}",
    }
    if value is not None:
        told["value"] = value
        told["finalMeasurement"] = {
            "stepCount": "3",
            "metrics": [{"metricId": "accuracy", "value": value}],
        }
    if state in ("SUCCEEDED", "INFEASIBLE"):
        told["endTime"] = f"2026-01-31T12:00:{number:02d}Z"
    return told | more


@dataclass
class ToldStudies:
    """One study and its trials; `state` is told, and each look may change it by `looked`."""

    state: str = "JOB_STATE_SUCCEEDED"
    trials: list[dict[str, Any]] = field(
        default_factory=lambda: [
            trial(1, 0.5),
            trial(2, 0.75, stopReason="it was worse than the median"),
            trial(3, 0.7, isGiven=True),
            trial(4, None, "INFEASIBLE", infeasibleReason="It reported no accuracy."),
        ]
    )
    spec: dict[str, Any] = field(default_factory=lambda: dict(SPEC))
    best: list[str] = field(default_factory=lambda: ["2"])
    display: str = "train"
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    later: list["ToldStudies"] = field(default_factory=list["ToldStudies"])  # what is true at later looks

    def row(self) -> dict[str, Any]:
        by_state: dict[str, int] = {}
        for item in self.trials:
            by_state[item["state"]] = by_state.get(item["state"], 0) + 1
        best = next((item for item in self.trials if item["id"] in self.best), None)
        row: dict[str, Any] = {
            "name": NAME,
            "displayName": self.display,
            "state": self.state,
            "createTime": "2026-01-31T12:00:00Z",
            "objectives": self.spec["metrics"],
            "trials": {"total": len(self.trials), "byState": by_state, "max": 20, "parallel": 2},
        }
        if best:
            points = {item["parameterId"]: item["value"] for item in best["parameters"]}
            row["best"] = {
                "trial": best["id"],
                "value": best["value"],
                "metric": "accuracy",
                "parameters": points,
            }
        return row | self.extra

    def answer(self, asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        path, _, query = asked.path.removeprefix("/v1/").partition("?")
        rest = path.partition("/hyperparameterTuningJobs")[2]
        if not rest and "/hyperparameterTuningJobs" not in path:
            return None
        if not rest and asked.method == "POST":
            return 200, {**asked.body, "name": NAME, "state": "JOB_STATE_PENDING"}
        if not rest:
            return 200, {"hyperparameterTuningJobs": [self.row()]}
        if not rest.startswith("/500"):
            return failure(404, "NOT_FOUND", "There is no such study.")
        return self._of_study(rest.removeprefix("/500"), asked, parse_qs(query))

    def _of_study(self, verb: str, asked: Asked, query: dict[str, list[str]]) -> tuple[int, Any]:
        match verb:
            case "" if asked.method == "GET":
                told = {
                    "name": NAME,
                    "displayName": self.display,
                    "studySpec": self.spec,
                    "trainshed": self.row(),
                }
                self._step()
                return 200, told
            case "/trials":
                return 200, self._listed(query)
            case ":analysis":
                history = [
                    {"trial": item["id"], "value": item["value"], "best": item["value"]}
                    for item in self.trials
                    if "value" in item
                ]
                importance = [
                    {"parameterId": "lr", "importance": 0.75},
                    {"parameterId": "net", "importance": 0.25},
                ]
                return 200, {
                    "best": self.best,
                    "history": history,
                    "importance": importance,
                    "eta": "90s",
                    "stoppedEarly": 1,
                    "savedTime": "30s",
                }
            case ":curves":
                named = (query.get("trials") or ["1,2,3"])[0].split(",")
                curves = [{"trial": n, "steps": [1, 2, 3], "values": [0.1, 0.4, 0.5]} for n in named]
                return 200, {"metric": "accuracy", "curves": curves}
            case ":best":
                if not self.best:
                    return failure(404, "NOT_FOUND", "No trial has a value.")
                return 200, {
                    "trial": self.best[0],
                    "metric": "accuracy",
                    "value": 0.75,
                    "parameters": {"lr": 0.025, "net": "big"},
                    "args": ["--lr=0.025", "--net=big"],
                    "customJob": CUSTOM_JOB,
                }
            case _:
                return 200, {}

    def _step(self) -> None:
        if self.later:
            following = self.later.pop(0)
            self.state, self.trials, self.best = following.state, following.trials, following.best

    def _listed(self, query: dict[str, list[str]]) -> dict[str, Any]:
        trials = list(self.trials)
        order = (query.get("orderBy") or ["id"])[0]
        if order.startswith("value"):
            trials = sorted((t for t in trials if "value" in t), key=lambda t: t["value"])
        if order.endswith(" desc"):
            trials.reverse()
        if "filter" in query:
            trials = [t for t in trials if f"state={t['state']}" in query["filter"][0].split(" OR ")]
        size = int((query.get("pageSize") or ["500"])[0])
        start = int((query.get("pageToken") or ["0"])[0])
        page: dict[str, Any] = {"trials": trials[start : start + size], "totalSize": len(trials)}
        if start + size < len(trials):
            page["nextPageToken"] = str(start + size)
        return page
