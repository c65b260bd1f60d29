"""Role: what a person may do in a project, or on the whole server. Pure.

`core/accounts/directory.py` makes principals of it. A role has all permissions of the one before it.
"""

from enum import StrEnum
from typing import assert_never

from trainshed.core.accounts.permission import Permission

_VIEWER = frozenset(
    {
        Permission.SERVER_READ,
        Permission.CONSOLE_OPEN,
        Permission.JOBS_GET,
        Permission.JOBS_LIST,
        Permission.LOGS_READ,
        Permission.COSTS_READ,
        Permission.SECRETS_READ,
        Permission.OPERATIONS_GET,
        Permission.MODELS_READ,
        Permission.CODE_READ,
        Permission.RUNTIMES_READ,
        Permission.IMAGES_READ,
        Permission.RESOURCES_READ,
        Permission.BUCKETS_LIST,
        Permission.BUCKETS_READ,
        Permission.OBJECTS_READ,
        Permission.OBJECTS_BATCH,
    }
)
_USER = _VIEWER | {
    Permission.JOBS_CREATE,
    Permission.JOBS_UPDATE,
    Permission.JOBS_CANCEL,
    Permission.JOBS_DELETE,
    Permission.JOBS_SHELL,
    Permission.MODELS_DELETE,
    Permission.SECRETS_WRITE,
    Permission.NOTICES_OWN,
    Permission.CODE_WRITE,
    Permission.IMAGES_WRITE,
    Permission.BUCKETS_WRITE,
    Permission.OBJECTS_WRITE,
}
_ADMIN = _USER | {
    Permission.RUNTIMES_WRITE,
    Permission.RESOURCES_WRITE,
    Permission.NOTICES_READ,
    Permission.ROLES_READ,
    Permission.ROLES_WRITE,
    Permission.AUDIT_READ,
}
# What concerns the server itself, and so comes with no role in a project.
_OF_SERVER = frozenset(
    {
        Permission.METRICS_READ,
        Permission.ACCOUNTS_READ,
        Permission.ACCOUNTS_WRITE,
        Permission.SHARES_WRITE,
        Permission.SECRETS_ROTATE,
        Permission.NOTICES_WRITE,  # the server sends to whatever address a channel names
    }
)
OF_EVERYBODY = frozenset({Permission.PUBLIC, Permission.ACCOUNT_OWN})
EVERYWHERE = "*"  # stands for all projects and for the server itself


class Role(StrEnum):
    VIEWER = "viewer"  # sees everything, changes nothing
    USER = "user"  # submits jobs and uses buckets
    ADMIN = "admin"  # gives others roles

    def rights(self, project: str) -> frozenset[Permission]:
        """In a project, or everywhere."""
        match self:
            case Role.VIEWER:
                return _VIEWER
            case Role.USER:
                return _USER
            case Role.ADMIN:
                return _ADMIN | _OF_SERVER if project == EVERYWHERE else _ADMIN
            case _:
                assert_never(self)
