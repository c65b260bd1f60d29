"""Parses a Kubernetes manifest: a job (Pod, Job, …), an image cache (ImageCache) or a study (Experiment).

`http.py` calls it.

A refusal lists every violation with its path in the manifest. Each ignored field gives a note. This module
reads nothing about running jobs.
"""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from trainshed.core.errors import Invalid
from trainshed.core.jobs.launch import QUEUE_LABEL
from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.experiment import TRIAL_SPEC, Experiment, convert_experiment, prefixed
from trainshed.dialects.kubernetes.job import convert, plain
from trainshed.dialects.kubernetes.job_set import convert_job_set
from trainshed.dialects.kubernetes.machine import amount
from trainshed.dialects.kubernetes.mpi_job import convert_mpi_job
from trainshed.dialects.kubernetes.origin import KubernetesManifest, digest_of
from trainshed.dialects.kubernetes.pod import Wanted
from trainshed.dialects.kubernetes.pytorch_job import convert_pytorch_job
from trainshed.dialects.kubernetes.shape import check, number, part, text, texts
from trainshed.dialects.kubernetes.tf_job import convert_tf_job
from trainshed.dialects.kubernetes.train_job import convert_train_job
from trainshed.dialects.kubernetes.trial_manifest import TEXTS, filled, places_elsewhere, words_to_try
from trainshed.wire.custom_job import LONGEST_NAME, JobDraft, parse_custom_job
from trainshed.wire.faults import Faults
from trainshed.wire.image_cache import cache_faults
from trainshed.wire.pool import Offer
from trainshed.wire.scalars import shown
from trainshed.wire.tuning_job import check_places

VERSIONS = {
    "Pod": ("v1",),
    "Job": ("batch/v1", "batch/v1beta1"),
    "ImageCache": ("eci.alibabacloud.com/v1",),
    "Experiment": ("kubeflow.org/v1beta1",),
    "PyTorchJob": ("kubeflow.org/v1",),
    "TFJob": ("kubeflow.org/v1",),
    "MPIJob": ("kubeflow.org/v2beta1", "kubeflow.org/v1"),
    "JobSet": ("jobset.x-k8s.io/v1", "jobset.x-k8s.io/v1alpha2"),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1",),
}
CACHE, EXPERIMENT = "ImageCache", "Experiment"
# The readers of the kinds that become a job.
_READERS: Mapping[str, Callable[[Mapping[str, Any], Catalogue, Faults], Wanted]] = {
    "Pod": convert,
    "Job": convert,
    "PyTorchJob": convert_pytorch_job,
    "TFJob": convert_tf_job,
    "MPIJob": convert_mpi_job,
    "JobSet": convert_job_set,
    "TrainJob": convert_train_job,
}
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobManifest:
    manifest: KubernetesManifest
    draft: JobDraft
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheManifest:
    name: str
    images: tuple[str, ...]
    room: int = 0
    retention_days: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentManifest:
    manifest: KubernetesManifest
    experiment: Experiment
    draft: JobDraft  # of each trial's job
    trial: KubernetesManifest  # ... and its words
    moves: bool = False  # the values of a trial change more than the texts of its programs
    notes: tuple[str, ...] = ()


def parse_manifest(
    document: Mapping[str, Any], offer: Offer
) -> JobManifest | CacheManifest | ExperimentManifest:
    """The requested job, cache or study; Invalid with every violation."""
    faults = Faults("manifest")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in VERSIONS:
        faults.lose("kind", f"must be one of {', '.join(VERSIONS)}, not {shown(kind)}.")
        faults.settle()
        raise AssertionError("unreachable")
    if document.get("apiVersion") not in VERSIONS[kind]:
        version, known = document.get("apiVersion"), " or ".join(VERSIONS[kind])
        faults.add("apiVersion", f"must be {known} for a {kind}, not {shown(version)}.")
    queued = _unsuspended(document)
    notes = list(check(queued, kind, "", faults))
    if queued is not document:
        notes.append("suspend is ignored: the job waits in its queue, and nobody has to resume it.")
    name = _name(document, faults, notes)
    if kind == CACHE:
        return _cache(document, name, faults, notes)
    manifest = KubernetesManifest(kind=kind, name=name, digest=digest_of(_asked(document)))
    if kind == EXPERIMENT:
        return _experiment(document, manifest, offer, faults, notes)
    wanted, draft = _job(document, offer, faults)
    manifest = replace(manifest, is_indexed=wanted.is_indexed, pools=wanted.pools, chief=wanted.chief)
    return JobManifest(manifest=manifest, draft=draft, notes=tuple(dict.fromkeys((*notes, *wanted.notes))))


def _job(document: Mapping[str, Any], offer: Offer, faults: Faults) -> tuple[Wanted, JobDraft]:
    wanted = _READERS.get(str(document.get("kind")), convert)(document, offer.catalogue, faults)
    try:
        draft = parse_custom_job(wanted.body, offer)
    except Invalid as error:
        for violation in error.violations:
            _tell(violation.field, violation.description, wanted.origins, faults)
        faults.settle()
        raise
    faults.settle()
    return wanted, draft


def _experiment(
    document: Mapping[str, Any],
    manifest: KubernetesManifest,
    offer: Offer,
    faults: Faults,
    notes: list[str],
) -> ExperimentManifest:
    experiment = convert_experiment(document, faults)
    moving = set(places_elsewhere(experiment.job))
    trial = None
    if not faults.under(TRIAL_SPEC) and not (moving and faults.under("spec.parameters")):
        trial = _tried(experiment, moving, offer, faults)
    if trial is not None and not faults.under("spec.trialTemplate.trialParameters"):
        check_places(trial.draft.spec, experiment.spec, faults, TRIAL_SPEC)
    faults.settle()
    assert trial is not None, "a trialSpec that cannot be read is a fault"
    own = (note for note in trial.notes if not note.startswith("metadata.namespace"))
    of_trial = (f"{TRIAL_SPEC}.{note}" if note.startswith("spec.") else note for note in own)
    return ExperimentManifest(
        manifest=manifest,
        experiment=experiment,
        draft=trial.draft,
        trial=trial.manifest,
        moves=bool(moving),
        notes=tuple(dict.fromkeys((*notes, *experiment.notes, *of_trial))),
    )


def _tried(experiment: Experiment, moving: Set[str], offer: Offer, faults: Faults) -> JobManifest | None:
    """The job of a trial, with its places still in its texts. Values that change what it is are tried."""
    parameters = [parameter for parameter in experiment.spec.space.parameters if parameter.id in moving]
    first = {parameter.id: words_to_try(parameter)[0] for parameter in parameters}
    trial = None
    for parameter in (None, *parameters):
        for word in words_to_try(parameter)[1:] if parameter else ("",):
            words = first | ({parameter.id: word} if parameter else {})
            with_words = ", ".join(f"{name} = {shown(value)}" for name, value in words.items())
            try:
                read = read_trial(filled(experiment.job, words, TEXTS), offer)
            except Invalid as error:
                prefixed(error, faults, f" That is with {with_words}." if words else "")
                return trial
            trial = trial or read
    return trial


def read_trial(job: Mapping[str, Any], offer: Offer) -> JobManifest:
    """The job of a trial of an Experiment; Invalid with every violation."""
    kind = job.get("kind")
    if not isinstance(kind, str) or kind not in _READERS:
        faults = Faults("manifest")
        faults.add("kind", f"must be one of {', '.join(_READERS)}, not {shown(kind)}.")
        faults.settle()
        raise AssertionError("unreachable")
    read = parse_manifest({"apiVersion": VERSIONS[kind][0], **job}, offer)
    assert isinstance(read, JobManifest), "every kind that has a reader becomes a job"
    return read


def _unsuspended(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A job that names a queue of Kueue is written suspended, for Kueue to resume it: without that."""
    spec = part(document, "spec")
    policy = part(spec, "runPolicy")
    is_suspended = spec.get("suspend") is True or policy.get("suspend") is True
    if not is_suspended or QUEUE_LABEL not in part(part(document, "metadata"), "labels"):
        return document
    rest = {key: value for key, value in spec.items() if key != "suspend"}
    if policy:
        rest["runPolicy"] = {key: value for key, value in policy.items() if key != "suspend"}
    return {**document, "spec": rest}


def _asked(document: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without the fields that a cluster adds."""
    metadata = {k: v for k, v in part(document, "metadata").items() if k in ("name", "labels", "annotations")}
    return plain({"kind": document.get("kind"), "metadata": metadata, "spec": document.get("spec")})


def _name(document: Mapping[str, Any], faults: Faults, notes: list[str]) -> str:
    metadata = part(document, "metadata")
    name, space = text(metadata, "name"), text(metadata, "namespace")
    if not name:
        faults.add("metadata.name", "is required.")
    elif len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        sentence = f"must be at most {LONGEST_NAME} small letters, digits, '-' and '.', not {shown(name)}."
        faults.add("metadata.name", sentence)
    if space and space != "default":
        notes.append("metadata.namespace is ignored: a name is known in its project and location.")
    return name


def _tell(field: str, sentence: str, origins: Mapping[str, str], faults: Faults) -> None:
    """Record a violation under the manifest's own path, unless that path has one already."""
    beginnings = [name for name in origins if field == name or field.startswith((f"{name}.", f"{name}["))]
    if not beginnings:
        path = {"display_name": "metadata.name"}.get(field, "spec")
    else:
        first = max(beginnings, key=len)
        rest = field[len(first) :] if first.endswith(("container_spec", "]")) else ""
        path = f"{origins[first]}{rest}"
    if not faults.under(path):
        faults.add(path, sentence)


def _cache(document: Mapping[str, Any], name: str, faults: Faults, notes: list[str]) -> CacheManifest:
    spec = part(document, "spec")
    images = tuple(dict.fromkeys(texts(spec, "images")))
    if part(document, "metadata").get("labels"):
        notes.append("metadata.labels is ignored: an image cache has none.")
    room = _room(spec.get("imageCacheSize"), faults)
    retention = number(spec, "retentionDays") or 0
    for where, sentence in cache_faults(images, retention):
        faults.add(f"spec.{where}", sentence)
    faults.settle()
    return CacheManifest(name=name, images=images, room=room, retention_days=retention, notes=tuple(notes))


def _room(value: object, faults: Faults) -> int:
    """The size in GiB. A number without a unit is in GiB, as Alibaba writes it."""
    if value is None:
        return 0
    quantity = amount(value)
    if quantity is None or quantity < 0:
        faults.add("spec.imageCacheSize", f"must be a number of GiB, not {shown(value)}.")
        return 0
    return int(quantity) if str(value).strip().isdigit() else max(1, round(quantity / (1 << 30)))
