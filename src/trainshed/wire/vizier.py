"""The Vizier service's messages: studies that clients ask for trials, what they send and what they get.

`api/vizier.py` calls it. A refusal lists every violation. `contexts` of a suggestion are refused: suggestions
come from the whole search space.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainshed.core.tuning.given_trial import GivenTrial
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import SearchSpace, TrialPoint
from trainshed.core.tuning.study import MAX_PARALLEL, Study, StudySpec, StudyState, Trial
from trainshed.wire import base, enums
from trainshed.wire.base import Message, enum, flag, int32, output_only, part, parts, text, values
from trainshed.wire.custom_job import LONGEST_NAME
from trainshed.wire.faults import Faults
from trainshed.wire.measurement import MeasurementFields, MeasurementRequest, parse_measurement
from trainshed.wire.scalars import kind_of, read_text, time_text
from trainshed.wire.study_schema import StudySpecFields
from trainshed.wire.study_spec import parse_study_spec, render_study_spec
from trainshed.wire.trial import TRIAL_STATES, parse_point, render_trial

LONGEST_CLIENT = 256
LONGEST_REASON = 1000
STUDY_STATES: Mapping[str, int] = {"STATE_UNSPECIFIED": 0, "ACTIVE": 1, "INACTIVE": 2, "COMPLETED": 3}
_TYPES = "type.googleapis.com/google.cloud.aiplatform"


def _read_value(value: object) -> object:
    """A number or a text. Other values are no value of any parameter."""
    if isinstance(value, str):
        return read_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number or a string, not {kind_of(value)}.")
    return value


class StudyFields(Message):
    display_name: str = text()
    study_spec: StudySpecFields | None = part(StudySpecFields)
    name: object = output_only()
    state: object = output_only()
    create_time: object = output_only()
    inactive_reason: object = output_only()


class LookupRequest(Message):
    display_name: str = text()
    parent: object = output_only()


class SuggestRequest(Message):
    suggestion_count: int = int32()
    client_id: str = text()
    contexts: tuple[object, ...] = values(lambda item: item)
    parent: object = output_only()


class TrialParameterFields(Message):
    parameter_id: str = text()
    value: object = base.scalar(_read_value)


class TrialFields(Message):
    parameters: tuple[TrialParameterFields, ...] = parts(TrialParameterFields)
    state: str = enum(TRIAL_STATES)
    final_measurement: MeasurementFields | None = part(MeasurementFields)
    measurements: tuple[MeasurementFields, ...] = parts(MeasurementFields)
    client_id: str = text()
    infeasible_reason: str = text()
    name: object = output_only()
    id: object = output_only()
    start_time: object = output_only()
    end_time: object = output_only()
    custom_job: object = output_only()
    web_access_uris: object = output_only(is_open=True)


class CompleteRequest(Message):
    final_measurement: MeasurementFields | None = part(MeasurementFields)
    trial_infeasible: bool = flag()
    infeasible_reason: str = text()
    name: object = output_only()


@dataclass(frozen=True, slots=True)
class Completion:
    final: Measurement | None = None
    infeasible: str | None = None  # why; None where it is feasible


def parse_study(body: Mapping[str, object]) -> tuple[str, StudySpec]:
    """The display name and what is searched for."""
    faults = Faults("study")
    given = base.read(StudyFields, body, faults)
    _check_name(given.display_name, faults)
    if given.study_spec is None and not faults.under("study_spec"):
        faults.add("study_spec", "is required.")
    spec = parse_study_spec(given.study_spec or StudySpecFields(), faults)
    faults.settle()
    return given.display_name, spec


def parse_lookup(body: Mapping[str, object]) -> str:
    faults = Faults("request")
    given = base.read(LookupRequest, body, faults)
    _check_name(given.display_name, faults)
    faults.settle()
    return given.display_name


def _check_name(name: str, faults: Faults) -> None:
    if not name:
        faults.add("display_name", "is required.")
    elif len(name) > LONGEST_NAME:
        faults.add("display_name", f"must have at most {LONGEST_NAME} characters, not {len(name)}.")


def parse_suggest(body: Mapping[str, object]) -> tuple[str, int]:
    """Who asks, and for how many trials: one where no number is given."""
    faults = Faults("request")
    given = base.read(SuggestRequest, body, faults)
    count = given.suggestion_count or 1
    if not 1 <= count <= MAX_PARALLEL:
        faults.add("suggestion_count", f"must be between 1 and {MAX_PARALLEL}, not {count}.")
    if given.contexts:
        faults.add("contexts", "must be absent: suggestions come from the whole search space.")
    _check_client(given.client_id, faults)
    faults.settle()
    return given.client_id, count


def _check_client(client: str, faults: Faults) -> None:
    if len(client) > LONGEST_CLIENT:
        faults.add("client_id", f"must have at most {LONGEST_CLIENT} characters, not {len(client)}.")


def parse_trial(body: Mapping[str, object], space: SearchSpace) -> GivenTrial:
    """A trial of a person's own. It has ended where its state or a final measurement says so."""
    faults = Faults("trial")
    given = base.read(TrialFields, body, faults)
    values: dict[str, object] = {}
    for number, parameter in enumerate(given.parameters):
        if parameter.parameter_id in values:
            sentence = f"stands twice: {parameter.parameter_id[:100]!r}."
            faults.add(f"parameters[{number}].parameter_id", sentence)
        values[parameter.parameter_id] = parameter.value
    point: TrialPoint = {}
    if not faults.under("parameters"):
        point = parse_point(values, space, "parameters", faults)
    measurements = [
        parse_measurement(fields, f"measurements[{number}]", faults)
        for number, fields in enumerate(given.measurements)
    ]
    is_infeasible = given.state == "INFEASIBLE"
    final = None if is_infeasible else _final(given.final_measurement, faults)
    is_completed = given.state == "SUCCEEDED" or final is not None
    if is_completed and final is None and not measurements:
        faults.add("final_measurement", "is required of a trial that has succeeded, or measurements.")
    _check_client(given.client_id, faults)
    faults.settle()
    return GivenTrial(
        point=point,
        client=given.client_id if given.state == "ACTIVE" else "",
        measurements=tuple(measurements),
        is_completed=is_completed,
        final=final,
        infeasible=given.infeasible_reason[:LONGEST_REASON] if is_infeasible else None,
    )


def parse_told(body: Mapping[str, object]) -> Measurement:
    """The body of addTrialMeasurement."""
    faults = Faults("request")
    given = base.read(MeasurementRequest, body, faults)
    if given.measurement is None and not faults.under("measurement"):
        faults.add("measurement", "is required.")
    measurement = parse_measurement(given.measurement or MeasurementFields(), "measurement", faults)
    faults.settle()
    return measurement


def parse_completion(body: Mapping[str, object]) -> Completion:
    faults = Faults("request")
    given = base.read(CompleteRequest, body, faults)
    if given.infeasible_reason and not given.trial_infeasible:
        faults.add("infeasible_reason", "needs trialInfeasible.")
    final = None if given.trial_infeasible else _final(given.final_measurement, faults)
    faults.settle()
    reason = given.infeasible_reason[:LONGEST_REASON]
    return Completion(final, reason if given.trial_infeasible else None)


def _final(given: MeasurementFields | None, faults: Faults) -> Measurement | None:
    """None where none is given, or an empty one, as some clients send it."""
    if given is None or not given.metrics:
        return None
    return parse_measurement(given, "final_measurement", faults)


def render_study(study: Study, *, enum_ints: bool = False) -> dict[str, Any]:
    state = study_state(study)
    answer: dict[str, Any] = {
        "name": study.name,
        "displayName": study.display_name,
        "studySpec": render_study_spec(study.spec, enum_ints=enum_ints),
        "state": enums.render_enum(state, STUDY_STATES, as_ints=enum_ints),
        "createTime": time_text(study.created_at),
    }
    if state == "INACTIVE":
        answer["inactiveReason"] = study.status.message
    return answer


def study_state(study: Study) -> str:
    match study.status.outcome or study.status.state:
        case StudyState.PENDING | StudyState.RUNNING | StudyState.STOPPING:
            return "ACTIVE"
        case StudyState.SUCCEEDED:
            return "COMPLETED"
        case _:
            return "INACTIVE"


def render_suggestion(
    study: Study, client: str, trials: Sequence[Trial], at: datetime, *, version: str, enum_ints: bool
) -> dict[str, Any]:
    """The fields of a finished operation, without its name."""
    now = time_text(at)
    metadata: dict[str, Any] = {"@type": f"{_TYPES}.{version}.SuggestTrialsMetadata", **_generic(now)}
    response: dict[str, Any] = {
        "@type": f"{_TYPES}.{version}.SuggestTrialsResponse",
        "trials": [render_trial(study, trial, enum_ints=enum_ints) for trial in trials],
        "studyState": enums.render_enum(study_state(study), STUDY_STATES, as_ints=enum_ints),
        "startTime": now,
        "endTime": now,
    }
    return {"metadata": metadata | {"clientId": client}, "done": True, "response": response}


def render_stopping_state(
    study: Study, number: int, should_stop: bool, at: datetime, *, version: str
) -> dict[str, Any]:
    """The fields of a finished operation, without its name."""
    return {
        "metadata": {
            # Google's own spelling.
            "@type": f"{_TYPES}.{version}.CheckTrialEarlyStoppingStateMetatdata",
            **_generic(time_text(at)),
            "study": study.name,
            "trial": f"{study.name}/trials/{number}",
        },
        "done": True,
        "response": {
            "@type": f"{_TYPES}.{version}.CheckTrialEarlyStoppingStateResponse",
            "shouldStop": should_stop,
        },
    }


def _generic(now: str) -> dict[str, Any]:
    return {"genericMetadata": {"createTime": now, "updateTime": now}}
