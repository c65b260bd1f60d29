"""A hyperparameterTuningJob: parses a request body into a TuningDraft, and renders a Study as the answer.

The trialJobSpec is that of a customJob, and is parsed as one; its violations are reported under its own path.
Ours are the fields of `study_schema`, and beside the counts:

    seed: 7                            the same trials again, as far as the program repeats itself
    initialTrials: [{lr: 0.1}]         points that are tried first

A refusal lists every violation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from trainshed.core.errors import Invalid, Violation
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.secret import JobSecrets
from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.study import (
    MAX_PARALLEL,
    MAX_TRIALS,
    Study,
    StudyLimits,
    StudySpec,
    StudyState,
    Trial,
)
from trainshed.core.tuning.trial_job import places
from trainshed.wire import base, enums, job_schema
from trainshed.wire.base import free, int32, int64, output_only, part, text, text_map, values
from trainshed.wire.custom_job import LONGEST_NAME, JobDraft, parse_custom_job, render_spec
from trainshed.wire.faults import Faults, invalid
from trainshed.wire.labels import check_labels
from trainshed.wire.pool import Offer
from trainshed.wire.scalars import kind_of, time_text
from trainshed.wire.study_schema import StudySpecFields
from trainshed.wire.study_spec import parse_study_spec, render_study_spec
from trainshed.wire.trial import parse_point, render_trial

MOST_MEASUREMENTS = 100_000  # in one answer; a study that has more shows its trials without
_TEMPLATE = "trial_job_spec"
_CANCELLED, _FAILED = 1, 9  # google.rpc.Code


def read_object(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be an object, not {kind_of(value)}.")
    return cast("Mapping[str, object]", value)


class TuningJobFields(job_schema.JobExtras):
    display_name: str = text()
    study_spec: StudySpecFields | None = part(StudySpecFields)
    max_trial_count: int = int32()
    parallel_trial_count: int = int32()
    max_failed_trial_count: int = int32()
    trial_job_spec: Mapping[str, object] | None = free()
    labels: Mapping[str, str] = text_map()
    seed: int | None = int64(None)
    initial_trials: tuple[Mapping[str, object], ...] = values(read_object)
    name: object = output_only()
    trials: object = output_only(is_open=True)
    state: object = output_only()
    create_time: object = output_only()
    start_time: object = output_only()
    end_time: object = output_only()
    update_time: object = output_only()
    error: object = output_only(is_open=True)
    satisfies_pzs: object = output_only()
    satisfies_pzi: object = output_only()
    trainshed: object = output_only(is_open=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningDraft:
    """A requested tuning job: valid, without an id."""

    display_name: str
    spec: StudySpec
    template: JobSpec
    limits: StudyLimits
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    extras: Mapping[str, object] = field(default_factory=dict[str, object])
    seed: int | None = None
    points: tuple[TrialPoint, ...] = ()
    secrets: JobSecrets = field(default_factory=dict[int, Mapping[str, str]])


def parse_tuning_job(
    body: Mapping[str, object], offer: Offer, before: JobSecrets | None = None
) -> TuningDraft:
    """The requested study; Invalid with every violation. `before` has the values of masked secrets."""
    faults = Faults("hyperparameter_tuning_job")
    job = base.read(TuningJobFields, body, faults)
    if not job.display_name:
        faults.add("display_name", "is required.")
    elif len(job.display_name) > LONGEST_NAME:
        faults.add("display_name", f"must have at most {LONGEST_NAME} characters.")
    check_labels(job.labels, "labels", faults)
    if job.study_spec is None:
        faults.add("study_spec", "is required.")
    spec = parse_study_spec(job.study_spec or StudySpecFields(), faults)
    limits = _limits(job, faults)
    draft = parse_template(job.trial_job_spec, job.display_name, offer, faults, before)
    if draft is not None:
        check_places(draft.spec, spec, faults)
    if job.seed is not None and job.seed < 0:
        faults.add("seed", f"must not be negative, as {job.seed} is.")
    points: tuple[TrialPoint, ...] = ()
    if not faults.under("study_spec"):
        points = parse_points(job.initial_trials, spec, "initial_trials", faults)
    faults.settle()
    assert draft is not None, "a template that cannot be read is a fault"
    return TuningDraft(
        display_name=job.display_name,
        spec=spec,
        template=draft.spec,
        limits=limits,
        labels=dict(job.labels),
        extras=base.write(job, job_schema.JobExtras),
        seed=job.seed,
        points=points,
        secrets=draft.secrets,
    )


def _limits(job: TuningJobFields, faults: Faults) -> StudyLimits:
    for name, most in (("max_trial_count", MAX_TRIALS), ("parallel_trial_count", MAX_PARALLEL)):
        if not 1 <= (count := getattr(job, name)) <= most:
            faults.add(name, f"must be between 1 and {most}, not {count}.")
    if job.max_failed_trial_count < 0:
        faults.add("max_failed_trial_count", f"must not be negative, as {job.max_failed_trial_count} is.")
    return StudyLimits(
        trials=job.max_trial_count, parallel=job.parallel_trial_count, failed=job.max_failed_trial_count
    )


def parse_template(
    given: Mapping[str, object] | None,
    display_name: str,
    offer: Offer,
    faults: Faults,
    before: JobSecrets | None = None,
) -> JobDraft | None:
    """The job of each trial. Its violations are added to `faults`; None where there are some."""
    if given is None:
        faults.add(_TEMPLATE, "is required.")
        return None
    try:
        return parse_custom_job({"display_name": "trial", "job_spec": given}, offer, before)
    except Invalid as error:
        for violation in error.violations:
            faults.add(template_path(violation.field), _renamed(violation.description))
        return None


def template_path(path: str) -> str:
    """The path of a customJob's field in a tuning job."""
    return f"{_TEMPLATE}{path.removeprefix('job_spec')}" if path.startswith("job_spec") else path


def relocated(error: Invalid) -> Invalid:
    """A service's refusal of the template, with the paths of a tuning job."""
    return invalid(
        tuple(Violation(template_path(v.field), _renamed(v.description)) for v in error.violations)
    )


def _renamed(sentence: str) -> str:
    return sentence.replace("'custom_job.job_spec", "'hyperparameter_tuning_job.trial_job_spec")


def check_places(template: JobSpec, spec: StudySpec, faults: Faults, path: str = _TEMPLATE) -> None:
    known = {parameter.id for parameter in spec.space.parameters}
    for name in sorted(places(template) - known):
        faults.add(path, f"has ${{trialParameters.{name[:100]}}}, and there is no such parameter.")


def parse_points(
    given: Sequence[object], spec: StudySpec, path: str, faults: Faults
) -> tuple[TrialPoint, ...]:
    if len(given) > MAX_PARALLEL:
        faults.add(path, f"must have at most {MAX_PARALLEL} points, not {len(given)}.")
        return ()
    return tuple(
        parse_point(point, spec.space, f"{path}[{number}]", faults) for number, point in enumerate(given)
    )


def render_tuning_job(
    study: Study,
    trials: Sequence[Trial] | None,
    *,
    enum_ints: bool = False,
    base_url: str = "",
    measurements: bool = True,
) -> dict[str, Any]:
    """As Google's API answers it; without trials where None are given."""
    status = study.status
    answer: dict[str, Any] = {
        "name": study.name,
        "displayName": study.display_name,
        "studySpec": render_study_spec(study.spec, enum_ints=enum_ints),
        "maxTrialCount": study.limits.trials,
        "parallelTrialCount": study.limits.parallel,
    }
    if study.limits.failed:
        answer["maxFailedTrialCount"] = study.limits.failed
    if study.template is not None:
        answer["trialJobSpec"] = render_spec(study.template, enum_ints=enum_ints)
    if trials:
        is_bearable = measurements and sum(len(t.measurements) for t in trials) <= MOST_MEASUREMENTS
        answer["trials"] = [
            render_trial(study, trial, enum_ints=enum_ints, base_url=base_url, measurements=is_bearable)
            for trial in trials
        ]
    name = enums.state_name(study.job_state)
    answer["state"] = enums.render_enum(name, enums.JOB_STATES, as_ints=enum_ints)
    answer["createTime"] = time_text(study.created_at)
    answer |= render_study_life(study)
    if status.state is StudyState.FAILED:
        answer["error"] = {"code": _FAILED, "message": status.message or "The study failed."}
    elif status.state is StudyState.CANCELLED:
        answer["error"] = {"code": _CANCELLED, "message": status.message or "The study was cancelled."}
    if study.labels:
        answer["labels"] = dict(study.labels)
    answer.update(study.extras)
    return answer


def render_study_life(study: Study) -> dict[str, Any]:
    """Its times after createTime."""
    status = study.status
    answer: dict[str, Any] = {}
    if status.started_at is not None:
        answer["startTime"] = time_text(status.started_at)
    if study.is_final and status.ended_at is not None:
        answer["endTime"] = time_text(status.ended_at)
    answer["updateTime"] = time_text(status.updated_at or study.created_at)
    return answer
