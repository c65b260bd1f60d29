"""The jobs of an Experiment's trials: what its grammar adds to the requests for them.

`service/trial_jobs.py` calls `ExperimentTrials`. An experiment with places outside of commands, arguments and
variables has its trialSpec among the secrets of its study, because its variables may be secrets.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from trainshed.core.jobs.secret import JobSecrets
from trainshed.core.tuning.study import PARTIAL, Study, Trial
from trainshed.core.tuning.trial_job import parameter_text, trial_origin, trial_spec
from trainshed.dialects.kubernetes.origin import KubernetesManifest, manifest_from, trial_words
from trainshed.service.jobs import JobRequest
from trainshed.wire.pool import Offer

TRIAL = "trial"  # in the record of a study: the manifest of its trials' jobs
_NO_POOL, _SPEC = -1, "trialSpec"  # where the secrets of a study have it


def with_trial_spec(secrets: JobSecrets, trial_spec: Mapping[str, Any] | None) -> JobSecrets:
    return secrets if trial_spec is None else {**secrets, _NO_POOL: {_SPEC: json.dumps(trial_spec)}}


def trial_record(manifest: KubernetesManifest, *, moves: bool) -> Mapping[str, object]:
    """What is kept of the manifest of trials' jobs in the record of their study."""
    is_plain = not moves and not manifest.origin.is_told
    return {} if is_plain else {TRIAL: manifest.as_json(), PARTIAL: True}


@dataclass(frozen=True, slots=True)
class ExperimentTrials:
    offer: Offer

    def request(self, study: Study, trial: Trial, request: JobRequest) -> JobRequest:
        """The request for a trial's job. Invalid where its values make no job of the trialSpec."""
        if TRIAL not in study.record:
            return request
        if _NO_POOL in request.secrets:
            request, manifest = self._read(study, trial, request)
        else:
            manifest = manifest_from(cast("Mapping[str, Any]", study.record[TRIAL]))
        return replace(request, origin=trial_words(manifest, trial_origin(study.id, trial.number)))

    def _read(self, study: Study, trial: Trial, request: JobRequest) -> tuple[JobRequest, KubernetesManifest]:
        # Most servers never see one.
        from trainshed.dialects.kubernetes.manifest import read_trial
        from trainshed.dialects.kubernetes.trial_manifest import filled

        given = json.loads(request.secrets[_NO_POOL][_SPEC])
        words = {name: parameter_text(value) for name, value in trial.point.items()}
        read = read_trial(filled(given, words), self.offer)
        plain = replace(trial, point={})  # all places are filled
        spec = trial_spec(replace(study, template=read.draft.spec), plain)
        return replace(request, spec=spec, secrets=read.draft.secrets), read.manifest
