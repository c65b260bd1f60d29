"""Who asks, and what they may do: one pure function decides it for every method of the API.

Each row of the method table names its permission, and each caller is a Principal with rights. `allowed`
compares the two, and checks whose the resource is. The API calls it after it has authenticated the caller and
looked up the bucket. It reads nothing and changes nothing.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from trainshed.core.bucket import NOBODY


class Permission(StrEnum):
    PUBLIC = "public"  # for everybody, without a token
    SERVER_READ = "server.read"
    CONSOLE_OPEN = "console.open"
    JOBS_CREATE = "jobs.create"
    JOBS_GET = "jobs.get"
    JOBS_LIST = "jobs.list"
    JOBS_UPDATE = "jobs.update"
    JOBS_CANCEL = "jobs.cancel"
    JOBS_DELETE = "jobs.delete"
    JOBS_SHELL = "jobs.shell"
    LOGS_READ = "logs.read"
    OPERATIONS_GET = "operations.get"
    MODELS_READ = "models.read"
    MODELS_DELETE = "models.delete"
    CODE_READ = "code.read"
    CODE_WRITE = "code.write"
    RUNTIMES_READ = "runtimes.read"
    RUNTIMES_WRITE = "runtimes.write"
    IMAGES_READ = "images.read"
    IMAGES_WRITE = "images.write"
    BUCKETS_LIST = "buckets.list"
    BUCKETS_READ = "buckets.read"
    BUCKETS_WRITE = "buckets.write"
    OBJECTS_READ = "objects.read"
    OBJECTS_WRITE = "objects.write"
    TOKENS_READ = "tokens.read"  # a job's own token, through the metadata server's methods
    OBJECTS_BATCH = "objects.batch"  # each request inside a batch has a permission of its own


class PrincipalKind(StrEnum):
    OWNER = "owner"  # has the server's own token, or the server requires none
    JOB = "job"  # a program of a job, with the job's own token
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Principal:
    kind: PrincipalKind
    id: str = ""  # of the job
    project: str = ""  # of the job
    rights: frozenset[Permission] = frozenset({Permission.PUBLIC})


OWNER = Principal(PrincipalKind.OWNER, rights=frozenset(Permission))
ANONYMOUS = Principal(PrincipalKind.ANONYMOUS)

_OF_A_JOB = frozenset(
    {
        Permission.PUBLIC,
        Permission.BUCKETS_LIST,
        Permission.BUCKETS_READ,
        Permission.OBJECTS_READ,
        Permission.OBJECTS_WRITE,
        Permission.OBJECTS_BATCH,
        Permission.TOKENS_READ,
    }
)


def principal_of_job(job: str, project: str) -> Principal:
    """A job's programs may use objects in buckets of their project, and in those without a project."""
    return Principal(PrincipalKind.JOB, job, project, _OF_A_JOB)


@dataclass(frozen=True, slots=True)
class Resource:
    """The bucket that a request names, or the project whose buckets it lists."""

    project: str  # whose it is
    bucket: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """True where there is no reason against it."""

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


YES = Decision()


def allowed(principal: Principal, permission: Permission, resource: Resource | None = None) -> Decision:
    """Whether the principal may do it, with a reason where not. Without a resource: whether it may at all."""
    if permission not in principal.rights:
        return Decision(_lacks(principal, permission))
    if resource is None or principal.kind is not PrincipalKind.JOB:
        return YES
    if resource.project in (principal.project, *NOBODY):
        return YES
    if resource.bucket:
        return Decision(
            f"Bucket '{resource.bucket}' belongs to another project: job {principal.id} may use those of its "
            f"own, '{principal.project}'."
        )
    return Decision(
        f"Job {principal.id} may see the buckets of its own project, '{principal.project}', and no others."
    )


def _lacks(principal: Principal, permission: Permission) -> str:
    match principal.kind:
        case PrincipalKind.JOB if permission is Permission.BUCKETS_WRITE:
            return f"Job {principal.id} may read and write objects, not make, change or remove buckets."
        case PrincipalKind.JOB:
            return f"Job {principal.id} may use objects of its project, and has no permission {permission}."
        case PrincipalKind.ANONYMOUS:
            return f"Without a token nobody has the permission {permission}."
        case PrincipalKind.OWNER:
            return f"The owner has no permission {permission}."
        case _:
            assert_never(principal.kind)
