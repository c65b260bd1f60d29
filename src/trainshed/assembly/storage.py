"""Everything that keeps data: jobs, logs, metrics, code, and buckets here or elsewhere."""

from dataclasses import dataclass

from trainshed.assembly.shared import SharedParts
from trainshed.buckets.store import DiskBuckets
from trainshed.clock import SteadyClock
from trainshed.code.store import DiskCodeStore
from trainshed.control.log_drops import LogDropRecorder
from trainshed.control.run_files import StoredRunFiles
from trainshed.core.bucket_port import Buckets
from trainshed.core.jobs.job import PIPELINE, Job
from trainshed.core.tuning.trial_job import TRIAL
from trainshed.dialects.ai_platform import origin as ai_platform
from trainshed.dialects.kubernetes import origin as kubernetes
from trainshed.logs.store import FileLogStore
from trainshed.metrics.store import FileMetricStore
from trainshed.service.access import NO_GRANTS, BucketGrants
from trainshed.service.hints import JobHints
from trainshed.settings.table import Settings
from trainshed.store.named_secret_files import NamedSecretFiles
from trainshed.store.secret_cipher import SecretCipher
from trainshed.store.secret_files import SecretFiles
from trainshed.store.sql import SqlStore
from trainshed.wire.training_pipeline import with_pipeline_words


def with_trial_words(job: Job) -> Job:
    """The job of a trial that the store has read, with the words of whichever grammar its study came in."""
    if kubernetes.is_trial(job):
        return kubernetes.with_trial_manifest_words(job)
    return ai_platform.with_older_trial_words(job)


# Who reads what the store keeps of a request that was not a customJob, by kind.
ORIGINS = {
    PIPELINE: with_pipeline_words,
    TRIAL: with_trial_words,
    ai_platform.KIND: ai_platform.with_training_words,
    kubernetes.KIND: kubernetes.with_manifest_words,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    store: SqlStore
    job_hints: JobHints  # made of what the store commits
    secrets: SecretFiles
    channel_secrets: SecretFiles  # of channels of notices
    named_secrets: NamedSecretFiles
    logs: FileLogStore
    log_drops: LogDropRecorder
    metrics: FileMetricStore
    code: DiskCodeStore
    files: StoredRunFiles  # what replicas write
    buckets: Buckets
    grants: BucketGrants  # what jobs are told of buckets kept elsewhere


def make_storage(shared: SharedParts) -> Storage:
    settings, clock, home = shared.settings, shared.clock, shared.settings.home
    job_hints = JobHints()
    store = SqlStore(settings.database or f"sqlite:///{home / 'trainshed.db'}", origins=ORIGINS)
    store.on_commit(job_hints.tell)
    log_drops = LogDropRecorder(store, clock)
    buckets, grants = make_buckets(settings, clock)
    logs = FileLogStore(home / "logs", quota=settings.log_quota, on_drop=log_drops.record)
    cipher = SecretCipher(home / "secret-key.json", home / "secrets")
    secrets, of_channels = SecretFiles(home / "secrets", cipher), SecretFiles(home / "notices", cipher)

    def reseal() -> int:
        return secrets.reseal() + of_channels.reseal()

    metrics, code = FileMetricStore(home / "metrics"), DiskCodeStore(home / "code", clock)
    return Storage(
        store=store,
        job_hints=job_hints,
        secrets=secrets,
        channel_secrets=of_channels,
        named_secrets=NamedSecretFiles(home / "secrets" / "named", cipher, reseal),
        logs=logs,
        log_drops=log_drops,
        metrics=metrics,
        code=code,
        files=StoredRunFiles(logs, metrics),
        buckets=buckets,
        grants=grants,
    )


def make_buckets(settings: Settings, clock: SteadyClock) -> tuple[Buckets, BucketGrants]:
    """Buckets here and elsewhere. What reaches other stores is imported only where the settings name one."""
    own = DiskBuckets(settings.home / "buckets", clock)
    if settings.buckets is None and not settings.s3:
        return own, NO_GRANTS
    from trainshed.backends.machine.loopback import loopback_ports
    from trainshed.buckets.remote.beside import with_store
    from trainshed.buckets.remote.rows import load_rows
    from trainshed.buckets.remote.store import RemoteBuckets
    from trainshed.buckets.router import RoutedBuckets
    from trainshed.buckets.seaweed import Seaweed

    rows, seaweed = load_rows(settings.buckets), None
    if settings.s3:
        seaweed = Seaweed(settings.home / "s3", settings.s3_buckets)
        rows = with_store(seaweed, rows)
    remote = RemoteBuckets(rows.remotes, settings.home / "spool", clock)
    grants = BucketGrants(granted=rows.granted, shown=rows.shown, ports=loopback_ports(rows.addresses()))
    return RoutedBuckets(own, remote, remote.names, seaweed), grants
