"""A trainingPipeline: a job in another form, and the model it makes. For `api/training_pipelines.py`.

The `trainingTaskInputs` of a custom task are a customJob's `jobSpec` in a looser spelling (mixed case,
whole numbers as 1.0). They are parsed as a `jobSpec`, and violations are reported under their own path. The
inputs are also stored unchanged, since clients look for their own spelling in the answer. Datasets and
AutoML are refused.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from trainshed.core.errors import Invalid, Violation
from trainshed.core.jobs.job import PIPELINE, Job, JobState
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.secret import is_secret_name, masked
from trainshed.core.model import VERSION, Model, model_of, order
from trainshed.wire import base, enums, job_schema
from trainshed.wire.base import Message, flag, free, output_only, part, text, text_map
from trainshed.wire.custom_job import LONGEST_NAME, JobDraft, parse_custom_job, render_life, web_access_uris
from trainshed.wire.faults import Faults, invalid
from trainshed.wire.labels import check_labels
from trainshed.wire.model import ModelExtras, ModelToUpload, id_fault, version_aliases
from trainshed.wire.pool import Offer
from trainshed.wire.scalars import time_text

CUSTOM_TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
_NO_DATASET = (
    "cannot be used: this server has no datasets. Leave inputDataConfig out and let the program read "
    "its data, from gs:// for example."
)


class InputDataConfig(Message):
    dataset_id: str = text()
    annotations_filter: str = text()
    annotation_schema_uri: str = text()
    saved_query_id: str = text()
    persist_ml_use_assignment: bool = flag()
    fraction_split: object = free()
    filter_split: object = free()
    predefined_split: object = free()
    timestamp_split: object = free()
    stratified_split: object = free()
    gcs_destination: job_schema.GcsDestination | None = part(job_schema.GcsDestination)
    bigquery_destination: object = free()


class PipelineExtras(Message):
    """Fields that are stored unchanged and returned in answers."""

    input_data_config: InputDataConfig | None = part(InputDataConfig)
    training_task_inputs: Mapping[str, object] | None = free()
    model_id: str = text()


class TrainingPipeline(PipelineExtras):
    display_name: str = text()
    encryption_spec: job_schema.EncryptionSpec | None = part(job_schema.EncryptionSpec)
    training_task_definition: str = text()
    model_to_upload: ModelToUpload | None = part(ModelToUpload)
    parent_model: str = text()
    labels: Mapping[str, str] = text_map()
    name: object = output_only()
    training_task_metadata: object = output_only(is_open=True)
    state: object = output_only()
    error: object = output_only(is_open=True)
    create_time: object = output_only()
    start_time: object = output_only()
    end_time: object = output_only()
    update_time: object = output_only()


def parse_training_pipeline(body: Mapping[str, object], offer: Offer) -> JobDraft:
    """The requested job, with the pipeline's own fields in its origin; Invalid with every violation."""
    faults = Faults("training_pipeline")
    asked = base.read(TrainingPipeline, body, faults)
    definition = asked.training_task_definition
    if definition != CUSTOM_TASK:
        what = f'"{definition[:200]}" does not run here' if definition else "is required"
        faults.add("training_task_definition", f"{what}: this server runs custom training, {CUSTOM_TASK}.")
        faults.settle()
    if (data := asked.input_data_config) is not None:
        for name in ("dataset_id", "saved_query_id", "bigquery_destination"):
            if getattr(data, name):
                faults.add(f"input_data_config.{name}", _NO_DATASET)
    if asked.parent_model:
        sentence = "cannot be used: a model has one version here. Leave it out, and a model is made."
        faults.add("parent_model", sentence)
    model = _model(asked, faults)
    draft = _job(asked, offer, faults)
    if model and not draft.spec.output and not faults.under("training_task_inputs"):
        sentence = "is required where modelToUpload is given: the model is what the program leaves there."
        faults.add("training_task_inputs.base_output_directory", sentence)
    faults.settle()
    names = {name for values in draft.secrets.values() for name in values}
    kept: dict[str, object] = {
        "said": masked(base.write(asked, PipelineExtras), lambda name: name in names or is_secret_name(name))
    }
    if model:
        kept["model"] = model
    return replace(draft, origin=_origin(kept))


def with_pipeline_words(job: Job) -> Job:
    """A job that the store has read, with the words of a pipeline in its origin."""
    return job if job.origin is None else replace(job, origin=_origin(job.origin.record))


def _origin(record: Mapping[str, Any]) -> Origin:
    return Origin(kind=PIPELINE, record=record, output_field="trainingTaskInputs.baseOutputDirectory")


def _model(asked: TrainingPipeline, faults: Faults) -> dict[str, object]:
    """The model to make; empty where none is requested."""
    given, path = asked.model_to_upload, "model_to_upload"
    if asked.model_id and (fault := id_fault(asked.model_id)):
        faults.add("model_id", fault)
    if given is None:
        return {}
    if not given.display_name:
        faults.add(f"{path}.display_name", "is required.")
    elif len(given.display_name) > LONGEST_NAME:
        faults.add(f"{path}.display_name", f"must have at most {LONGEST_NAME} characters.")
    check_labels(given.labels, f"{path}.labels", faults)
    return order(given.display_name, asked.model_id, given.labels, masked(base.write(given, ModelExtras)))


def _job(asked: TrainingPipeline, offer: Offer, faults: Faults) -> JobDraft:
    """Parses the inputs as a customJob's spec. Its violations are added to `faults`."""
    job: dict[str, object] = {
        "display_name": asked.display_name,
        "labels": asked.labels,
        "job_spec": _worded(asked.training_task_inputs or {}),
        **base.write(asked, job_schema.JobExtras),
    }
    try:
        return parse_custom_job(job, offer)
    except Invalid as error:
        for violation in error.violations:
            faults.add(_moved(violation.field), _renamed(violation.description))
        faults.settle()
        raise


def _worded(value: object, *, inside_args: bool = False) -> Any:
    """Converts numbers among arguments to text: the SDK accepts `["--epochs", 5]` and sends 5.0."""
    match value:
        case Mapping():
            fields = cast("Mapping[str, object]", value)
            return {name: _worded(item, inside_args=name == "args") for name, item in fields.items()}
        case list():
            return [_worded(item, inside_args=inside_args) for item in cast("list[object]", value)]
        case bool():
            return value
        case float() if inside_args:
            return str(int(value)) if value.is_integer() else repr(value)
        case int() if inside_args:
            return str(value)
        case _:
            return value


def _moved(path: str) -> str:
    head, dot, rest = path.partition(".")
    return f"training_task_inputs{dot}{rest}" if head == "job_spec" else path


def _renamed(sentence: str) -> str:
    moved = sentence.replace("'custom_job.job_spec", "'training_pipeline.training_task_inputs")
    return moved.replace("'custom_job'", "'training_pipeline'")


def relocated(error: Invalid) -> Invalid:
    """A service's refusal of the job, with the paths of a pipeline."""
    violations = [
        Violation(_moved(violation.field), _renamed(violation.description)) for violation in error.violations
    ]
    return invalid(tuple(violations))


def pipeline_name(job: Job) -> str:
    pipeline = job.owner.id if job.owner else job.id
    return f"projects/{job.project}/locations/{job.location}/trainingPipelines/{pipeline}"


def render_training_pipeline(job: Job, *, enum_ints: bool = False, base_url: str = "") -> dict[str, Any]:
    status = job.status
    if job.origin is None:
        raise LookupError(f"job {job.id} is not that of a pipeline")
    metadata: dict[str, Any] = {"backingCustomJob": job.name}
    if job.spec.web_access and status.state is JobState.RUNNING:
        metadata["webAccessUris"] = web_access_uris(job, base_url)
    answer: dict[str, Any] = {
        "name": pipeline_name(job),
        "displayName": job.display_name,
        "trainingTaskDefinition": CUSTOM_TASK,
        **masked(job.origin.record["said"]),  # older releases stored it as it was sent
        "trainingTaskMetadata": metadata,
        "state": enums.render_enum(
            f"PIPELINE_STATE_{status.state.value}", enums.PIPELINE_STATES, as_ints=enum_ints
        ),
        "createTime": time_text(job.created_at),
    }
    if (model := model_of(job)) is not None:
        answer["modelToUpload"] = _render_upload(model, is_there=status.state is JobState.SUCCEEDED)
    answer |= render_life(job)
    if "encryptionSpec" in job.extras:
        answer["encryptionSpec"] = job.extras["encryptionSpec"]
    return answer


def _render_upload(model: Model, *, is_there: bool) -> dict[str, Any]:
    """The requested model. Its name is added once it exists: clients take the name as proof of that."""
    answer: dict[str, Any] = {"displayName": model.display_name, **masked(model.said)}
    if model.labels:
        answer["labels"] = dict(model.labels)
    if is_there:
        answer |= {
            "name": model.name,
            "versionId": VERSION,
            "versionAliases": version_aliases(model),
            "artifactUri": model.artifact,
        }
    return answer
