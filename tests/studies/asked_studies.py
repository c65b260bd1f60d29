"""Studies of the Vizier service over plain HTTP: for tests that play the client that runs the trials."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.live import PARENT, LiveServer

LR = {"parameterId": "lr", "doubleValueSpec": {"minValue": 0.001, "maxValue": 1.0}}
NET = {"parameterId": "net", "categoricalValueSpec": {"values": ["small", "large"]}}
LOSS = {"metricId": "loss", "goal": "MINIMIZE"}


@dataclass(frozen=True)
class AskedStudy:
    server: LiveServer
    name: str
    metric: str = "loss"

    @property
    def path(self) -> str:
        return f"/v1/{self.name}"

    def ask(self, count: int = 1, client: str = "worker") -> list[str]:
        """The numbers of trials that the client is to run."""
        body = {"suggestionCount": count, "clientId": client}
        operation = self.server.post(f"{self.path}/trials:suggest", body)
        return [trial["name"].rpartition("/")[2] for trial in operation["response"]["trials"]]

    def create_trial(self, point: Mapping[str, object], value: float) -> str:
        """A trial of one's own that has its result."""
        body = {
            "parameters": [{"parameterId": name, "value": given} for name, given in point.items()],
            "finalMeasurement": self._measured(1, value),
        }
        return str(self.server.post(f"{self.path}/trials", body)["id"])

    def measure(self, trial: str, step: int, value: float) -> None:
        body = {"measurement": self._measured(step, value)}
        self.server.post(f"{self.path}/trials/{trial}:addTrialMeasurement", body)

    def complete(self, trial: str, value: float, step: int = 10) -> None:
        body = {"finalMeasurement": self._measured(step, value)}
        self.server.post(f"{self.path}/trials/{trial}:complete", body)

    def give_up(self, trial: str, why: str) -> None:
        body = {"trialInfeasible": True, "infeasibleReason": why}
        self.server.post(f"{self.path}/trials/{trial}:complete", body)

    def _measured(self, step: int, value: float) -> dict[str, Any]:
        return {"stepCount": str(step), "metrics": [{"metricId": self.metric, "value": value}]}


def asked_study(
    server: LiveServer,
    name: str,
    parameters: list[Any] | None = None,
    metric: Mapping[str, str] = LOSS,
    parent: str = PARENT,
) -> AskedStudy:
    body = {
        "displayName": name,
        "studySpec": {
            "metrics": [metric],
            "parameters": parameters or [LR, NET],
            "algorithm": "RANDOM_SEARCH",
        },
    }
    made = server.post(f"{parent}/studies", body)
    return AskedStudy(server, str(made["name"]), metric["metricId"])
