"""The Kubernetes manifest that a job was applied as. Pure.

Kind and name identify a job: one job of a name at a time. The record keeps them with the hash of the
manifest, so that the same manifest, applied again, is recognised.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from trainshed.core.jobs.cluster_env import CHIEF
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.pool_words import PoolWords, RemoteWords
from trainshed.core.tuning.trial_job import with_trial_words

KIND = "manifest"  # as stored and in answers; never change it
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"

# Stored as an idempotency key. Clients send theirs in a header, which cannot have a line break.
_KEY = "manifests\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesManifest:
    kind: str  # Pod, Job, JobSet, …
    name: str
    digest: str
    is_indexed: bool = False  # replicas get their number as JOB_COMPLETION_INDEX
    pools: tuple[PoolWords, ...] = ()  # of a kind whose replicas have names
    chief: str = ""  # of a TFJob: what TF_CONFIG calls the first replica

    def as_json(self) -> dict[str, object]:
        """What is stored; `manifest_from` reads it."""
        record: dict[str, object] = {"kind": self.kind, "name": self.name, "digest": self.digest}
        record |= {"indexed": True} if self.is_indexed else {}
        record |= {"pools": [_words_record(words) for words in self.pools]} if self.pools else {}
        return record | ({"chief": self.chief} if self.chief else {})

    @property
    def origin(self) -> Origin:
        return Origin(
            kind=KIND,
            record=self.as_json(),
            index_variable=INDEX_VARIABLE if self.is_indexed else "",
            pools=self.pools,
            chief=self.chief or CHIEF,
            lists_evaluators=not self.chief,
            tells_alone=not self.chief,
        )

    def key(self, location: str, before: str) -> str:
        """The key of the job that follows `before` under this name; empty `before`: of the first job."""
        return f"{_KEY}{location}\n{self.kind}\n{self.name}\n{before}"


def manifest_of(job: Job) -> KubernetesManifest | None:
    """The manifest that was applied; None for any other job."""
    if job.origin is None or job.origin.kind != KIND:
        return None
    return manifest_from(job.origin.record)


def manifest_from(record: Mapping[str, Any]) -> KubernetesManifest:
    return KubernetesManifest(
        kind=str(record["kind"]),
        name=str(record["name"]),
        digest=str(record["digest"]),
        is_indexed=bool(record.get("indexed")),
        pools=tuple(_words(row) for row in record.get("pools", ())),
        chief=str(record.get("chief", "")),
    )


def _words_record(words: PoolWords) -> dict[str, object]:
    record: dict[str, object] = {"hosts": list(words.hosts), "group": words.group, "first": words.first}
    return record | ({} if words.remote is None else {"remote": asdict(words.remote)})


def _words(record: Mapping[str, Any]) -> PoolWords:
    remote = RemoteWords(**record["remote"]) if "remote" in record else None
    return PoolWords(
        hosts=tuple(record["hosts"]), group=record["group"], first=record["first"], remote=remote
    )


def with_manifest_words(job: Job) -> Job:
    """A job that the store has read, with the words of its manifest in its origin."""
    manifest = manifest_of(job)
    return job if manifest is None else replace(job, origin=manifest.origin)


def trial_words(manifest: KubernetesManifest, trial: Origin) -> Origin:
    """The origin of a trial's job, with the words of the manifest that its experiment has for trials."""
    record = {**trial.record, KIND: manifest.as_json()}
    return replace(manifest.origin, kind=trial.kind, record=record, trial=trial.trial)


def is_trial(job: Job) -> bool:
    """Whether the job of a trial has the words of a manifest."""
    return job.origin is not None and KIND in job.origin.record


def with_trial_manifest_words(job: Job) -> Job:
    """The job of a trial that the store has read, with the words of its manifest in its origin."""
    plain = with_trial_words(job)
    assert job.origin is not None
    assert plain.origin is not None
    return replace(job, origin=trial_words(manifest_from(job.origin.record[KIND]), plain.origin))


def digest_of(document: Mapping[str, object]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
