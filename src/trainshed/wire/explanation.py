"""An explanation (`:why`, `:explain`) as JSON. Google's API has no counterpart: the names are ours."""

from typing import Any

from trainshed.core.explain.explanation import Change, Eta, Explanation, Ground
from trainshed.wire import enums
from trainshed.wire.scalars import time_text


def render_explanation(explanation: Explanation) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "state": enums.state_name(explanation.state),
        "because": render_ground(explanation.ground),
    }
    if explanation.position is None:
        return answer
    answer |= {
        "would": "start now" if explanation.starts_now else "wait",
        "position": explanation.position,
        "queueLength": explanation.queue,
        "changes": [render_change(change) for change in explanation.changes],
    }
    if explanation.eta is not None:
        answer["eta"] = render_eta(explanation.eta)
    return answer


def render_ground(ground: Ground) -> dict[str, Any]:
    answer: dict[str, Any] = {"reason": ground.reason.value, "message": ground.message}
    if ground.remedy:
        answer["remedy"] = ground.remedy
    if ground.job:
        answer["job"] = ground.job
    if ground.at is not None:
        answer["time"] = time_text(ground.at)
    if ground.grounds:
        answer["because"] = [render_ground(part) for part in ground.grounds]
    return answer


def render_change(change: Change) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "field": change.field,
        "from": change.before,
        "to": change.after,
        "message": change.sentence,
        "costs": change.toll.value,
    }
    if change.job:
        answer["job"] = change.job
    return answer


def render_eta(eta: Eta) -> dict[str, Any]:
    """Unknown bounds are left out. There is one likely time or a range of them, never both."""
    answer: dict[str, Any] = {"earliest": time_text(eta.earliest)}
    if eta.likely is not None:
        answer["likely"] = time_text(eta.likely)
    elif eta.between is not None:
        answer["likelyFrom"], answer["likelyTo"] = map(time_text, eta.between)
    if eta.latest is not None:
        answer["latest"] = time_text(eta.latest)
    return answer | {"basis": eta.basis}
