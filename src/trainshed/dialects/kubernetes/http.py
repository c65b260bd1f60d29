"""manifests: applies Kubernetes' manifests (jobs, image caches, studies) and lists them."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainshed.api.call import MOST_JOB, Call, Json, Method, row
from trainshed.api.methods import VERSIONS
from trainshed.api.permitted import allowed_image
from trainshed.core.accounts.permission import Permission
from trainshed.core.errors import NotFound
from trainshed.core.jobs.job import Job
from trainshed.core.query import Compare, JobQuery, Operator, QueryField
from trainshed.core.supplies.image_cache import ImageCache
from trainshed.dialects.kubernetes.experiment_service import ExperimentService
from trainshed.dialects.kubernetes.experiment_trials import trial_record, with_trial_spec
from trainshed.dialects.kubernetes.origin import KubernetesManifest, manifest_of
from trainshed.dialects.kubernetes.service import ManifestService
from trainshed.service.image_caches import CacheOutcome, ImageCacheService
from trainshed.service.jobs import JobRequest
from trainshed.service.studies import StudyRequest
from trainshed.service.study_views import StudyViews
from trainshed.wire import page
from trainshed.wire.custom_job import JobDraft, render_custom_job, render_spec
from trainshed.wire.image_cache import render_cache
from trainshed.wire.job_status import render_job_status
from trainshed.wire.pool import Offer
from trainshed.wire.study_row import render_study_row
from trainshed.wire.study_spec import render_study_spec
from trainshed.wire.tuning_job import render_tuning_job

EXPERIMENT = "Experiment"
DRY_RUN, CREATED, UNCHANGED = "DRY_RUN", "CREATED", "UNCHANGED"


@dataclass(slots=True)
class ManifestHandlers:
    manifests: ManifestService
    caches: ImageCacheService
    experiments: ExperimentService
    views: StudyViews
    offer: Offer

    async def apply(self, call: Call) -> Json:
        from trainshed.dialects.kubernetes.manifest import (  # most servers never see one
            CacheManifest,
            ExperimentManifest,
            parse_manifest,
        )

        wanted = parse_manifest(call.body, self.offer.to(call.principal))
        answer: Json = {"kind": str(call.body["kind"]), "notes": list(wanted.notes)}
        if isinstance(wanted, CacheManifest):
            for image in wanted.images:
                allowed_image(call, image)
            asked = self.caches.draft(
                (call.path["project"], call.path["location"]),
                wanted.name,
                wanted.images,
                room=wanted.room,
                days=wanted.retention_days,
            )
            return answer | await self._cache(call, asked)
        if isinstance(wanted, ExperimentManifest):
            request = StudyRequest(
                display_name=wanted.manifest.name,
                spec=wanted.experiment.spec,
                limits=wanted.experiment.limits,
                seed=wanted.experiment.seed,
                template=wanted.draft.spec,
                labels=wanted.draft.labels,
                secrets=with_trial_spec(
                    wanted.draft.secrets, wanted.experiment.job if wanted.moves else None
                ),
                record=trial_record(wanted.trial, moves=wanted.moves),
                submitter=call.submitter(),
            )
            return answer | await self._experiment(call, wanted.manifest, request)
        return answer | await self._job(call, wanted.manifest, wanted.draft, wanted.notes)

    async def find(self, call: Call) -> Json:
        """The applied jobs, newest first."""
        project, location = call.path["project"], call.path["location"]
        kind, name = call.query.get("kind", ""), call.query.get("name", "")
        fingerprint = page.fingerprint("manifests", project, location, kind, name)
        if kind == EXPERIMENT:
            return await self._experiments(call, name, fingerprint)
        listing = await self.manifests.find(
            JobQuery(
                project=project,
                location=location,
                where=Compare(QueryField.DISPLAY_NAME, Operator.EQ, name) if name else None,
                limit=page.parse_size(call.query.get("pageSize")),
                cursor=call.pages.decode(call.query.get("pageToken", ""), fingerprint),
            )
        )
        rows = [_row(job) for job in listing.jobs]
        chosen = [row for row in rows if not kind or row["kind"] == kind]
        return call.pages.render("manifests", chosen, listing.next_cursor, fingerprint)

    async def _job(
        self, call: Call, manifest: KubernetesManifest, draft: JobDraft, notes: tuple[str, ...]
    ) -> Json:
        project, location = call.path["project"], call.path["location"]
        answer: Json = {"name": manifest.name}
        again = call.flag("again")
        if call.flag("dryRun"):
            there = await self.manifests.there(project, location, manifest, again=again)
            known = None if there is None else manifest_of(there)
            same = not again and known is not None and known.digest == manifest.digest
            return answer | {"outcome": UNCHANGED if same else DRY_RUN, "customJob": _drafted(draft)}
        request = JobRequest(
            display_name=draft.display_name,
            spec=draft.spec,
            labels=draft.labels,
            secrets=draft.secrets,
            remarks=notes,
            submitter=call.submitter(),
        )
        job, is_new = await self.manifests.apply(project, location, request, manifest, again=again)
        rendered = render_custom_job(job, enum_ints=call.enum_ints, base_url=call.base_url)
        return answer | {"outcome": CREATED if is_new else UNCHANGED, "customJob": rendered}

    async def _experiment(self, call: Call, manifest: KubernetesManifest, request: StudyRequest) -> Json:
        project, location = call.path["project"], call.path["location"]
        again, answer = call.flag("again"), {"name": manifest.name}
        if call.flag("dryRun"):
            there = await self.experiments.there(project, location, manifest, again=again)
            same = not again and there is not None and there.record.get("digest") == manifest.digest
            body: Json = {
                "displayName": request.display_name,
                "studySpec": render_study_spec(request.spec),
                "maxTrialCount": request.limits.trials,
                "parallelTrialCount": request.limits.parallel,
                "trialJobSpec": render_spec(request.template) if request.template else {},
            }
            return {**answer, "outcome": UNCHANGED if same else DRY_RUN, "hyperparameterTuningJob": body}
        study, is_new = await self.experiments.apply(project, location, request, manifest, again=again)
        return {
            **answer,
            "outcome": CREATED if is_new else UNCHANGED,
            "hyperparameterTuningJob": render_tuning_job(study, None, enum_ints=call.enum_ints),
        }

    async def _experiments(self, call: Call, name: str, question: str) -> Json:
        listing = await self.experiments.find(
            call.path["project"],
            call.path["location"],
            name,
            limit=page.parse_size(call.query.get("pageSize")),
            cursor=call.pages.decode(call.query.get("pageToken", ""), question),
        )
        figures = await self.views.figures(listing.studies)
        rows = [
            {
                "kind": EXPERIMENT,
                "name": study.display_name,
                "study": render_study_row(study, figures[study.id]),
            }
            for study in listing.studies
        ]
        return call.pages.render("manifests", rows, listing.next_cursor, question)

    async def _cache(self, call: Call, asked: ImageCache) -> Json:
        dry_run = call.flag("dryRun")
        cache, outcome = await self.caches.apply(asked, dry_run=dry_run)
        outcome_name = DRY_RUN if dry_run and outcome is not CacheOutcome.UNCHANGED else outcome.value
        return {"name": asked.id, "outcome": outcome_name, "imageCache": render_cache(cache)}


def kubernetes_methods(manifests: ManifestHandlers) -> Iterator[Method]:
    for version in VERSIONS:
        parent = f"/{version}/projects/{{project}}/locations/{{location}}"
        yield row(
            "POST",
            f"{parent}/manifests:apply",
            manifests.apply,
            Permission.JOBS_CREATE,
            most_body=MOST_JOB,
        )
        yield row("GET", f"{parent}/manifests", manifests.find, Permission.JOBS_LIST)


def _drafted(draft: JobDraft) -> Json:
    """The answer for a job that a dry run does not create."""
    answer: Json = {"displayName": draft.display_name, "jobSpec": render_spec(draft.spec)}
    return answer | ({"labels": dict(draft.labels)} if draft.labels else {})


def _row(job: Job) -> Json:
    manifest = manifest_of(job)
    if manifest is None:
        raise NotFound(f"There is no manifest of job {job.id}.")
    return {"kind": manifest.kind, "name": manifest.name, "job": render_job_status(job)}
