"""Who asks, and what they may do: one pure function decides it for every method of the API.

Each row of the method table names its permission, and each caller is a Principal with rights. `allowed`
compares the two, and checks whose the resource is. The API calls it after it has authenticated the caller and
looked up the bucket. It reads nothing and changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from trainshed.core.bucket import NOBODY

ALL_PROJECTS = "-"  # in place of a project: all of them at once
_READING = frozenset({"public", "read", "open", "get", "list", "batch"})  # last words of permissions


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
    COSTS_READ = "costs.read"
    MODELS_READ = "models.read"
    MODELS_DELETE = "models.delete"
    SECRETS_READ = "secrets.read"  # names of secrets; no method gives a value
    SECRETS_WRITE = "secrets.write"
    SECRETS_ROTATE = "secrets.rotate"  # the server's key, which encrypts those of all projects
    CODE_READ = "code.read"
    CODE_WRITE = "code.write"
    RUNTIMES_READ = "runtimes.read"
    RUNTIMES_WRITE = "runtimes.write"
    IMAGES_READ = "images.read"
    IMAGES_WRITE = "images.write"
    RESOURCES_READ = "resources.read"  # persistent ones
    RESOURCES_WRITE = "resources.write"  # also keeps machines from other projects
    NOTICES_READ = "notices.read"
    NOTICES_WRITE = "notices.write"  # also lets the server send requests to any address
    NOTICES_OWN = "notices.own"  # channels that are told of one's own jobs
    BUCKETS_LIST = "buckets.list"
    BUCKETS_READ = "buckets.read"
    BUCKETS_WRITE = "buckets.write"
    OBJECTS_READ = "objects.read"
    OBJECTS_WRITE = "objects.write"
    TOKENS_READ = "tokens.read"  # a job's own token, through the metadata server's methods
    OBJECTS_BATCH = "objects.batch"  # each request inside a batch has a permission of its own
    METRICS_READ = "metrics.read"  # of the whole server, with the names of all jobs
    ACCOUNT_OWN = "account.own"  # who one is, and one's own tokens
    ACCOUNTS_READ = "accounts.read"
    ACCOUNTS_WRITE = "accounts.write"
    ROLES_READ = "roles.read"
    ROLES_WRITE = "roles.write"
    AUDIT_READ = "audit.read"
    SHARES_WRITE = "shares.write"

    @property
    def reads(self) -> bool:
        """Whether it changes nothing. What is in a batch has permissions of its own."""
        return self.rpartition(".")[2] in _READING


class PrincipalKind(StrEnum):
    OWNER = "owner"  # has the server's own token, or the server requires none
    ACCOUNT = "account"  # a person or a service account, with a token of theirs
    JOB = "job"  # a program of a job, with the job's own token
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Principal:
    kind: PrincipalKind
    id: str = ""  # of the job, or the name of the account
    project: str = ""  # of the job
    rights: frozenset[Permission] = frozenset({Permission.PUBLIC})  # in every project
    by_project: Mapping[str, frozenset[Permission]] = field(default_factory=dict[str, frozenset[Permission]])
    token: str = ""  # the id of the account's token
    limited: bool = False  # its token has fewer rights than its account
    session: str = field(default="", compare=False)  # a mark of the browser's session by which it asks
    session_ends_at: datetime | None = field(default=None, compare=False)  # None: it has no session

    def __str__(self) -> str:
        return f"{self.kind} {self.id}".rstrip()

    def rights_in(self, project: str) -> frozenset[Permission]:
        if project == ALL_PROJECTS:
            return self.rights
        return self.rights | self.by_project.get(project, frozenset())

    @property
    def rights_somewhere(self) -> frozenset[Permission]:
        return self.rights.union(*self.by_project.values())

    @property
    def own_projects(self) -> tuple[str, ...]:
        """Those it sees; empty where it sees all, or none."""
        if self.sees_all:
            return ()
        return tuple(sorted(project for project in self.by_project if self.sees(project)))

    @property
    def sees_all(self) -> bool:
        """Whether it may know what there is in every project."""
        return Permission.JOBS_LIST in self.rights

    def sees(self, project: str) -> bool:
        """Whether it may know what there is in a project."""
        return Permission.JOBS_LIST in self.rights_in(project)


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
    """The project that a request names, or the bucket and whose that is."""

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
    if principal.kind is PrincipalKind.ACCOUNT:
        return _allowed_account(principal, permission, resource)
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


def _allowed_account(principal: Principal, permission: Permission, resource: Resource | None) -> Decision:
    """The words are the same for a project that is not there: nobody learns which ones are."""
    if resource is None or resource.project in NOBODY:
        if permission in principal.rights_somewhere:
            return YES
        return Decision(f"{principal.id} has no role with the permission {permission}.")
    if permission in principal.rights_in(resource.project):
        return YES
    if resource.bucket:
        return Decision(f"{principal.id} may not use bucket '{resource.bucket}' so ({permission}).")
    return Decision(
        f"{principal.id} has no permission {permission} in project '{resource.project}', or there is no such "
        "project. Whoever administers it can give you a role: trainshed roles grant."
    )


def _lacks(principal: Principal, permission: Permission) -> str:
    match principal.kind:
        case PrincipalKind.JOB if permission is Permission.BUCKETS_WRITE:
            return f"Job {principal.id} may read and write objects, not make, change or remove buckets."
        case PrincipalKind.JOB:
            return f"Job {principal.id} may use objects of its project, and has no permission {permission}."
        case PrincipalKind.ACCOUNT:
            return f"{principal.id} has no permission {permission}."
        case PrincipalKind.ANONYMOUS:
            return f"Without a token nobody has the permission {permission}."
        case PrincipalKind.OWNER:
            return f"The owner has no permission {permission}."
        case _:
            assert_never(principal.kind)
