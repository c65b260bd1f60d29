"""The directory of accounts, in a file of the home that only its owner may read.

`service/accounts.py` changes it. All of it is in memory, so that a request costs no query. A change is on
the disk before it counts; a kill at any line leaves the file before or the file after it. A server without
accounts has no such file.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from trainshed.core.accounts.directory import (
    AccessToken,
    Account,
    AccountKind,
    Directory,
    ProviderIdentity,
    RoleGrant,
)
from trainshed.core.accounts.role import Role
from trainshed.core.errors import Unavailable
from trainshed.disk.folder_sync import write_durably

_VERSION = 1


class DirectoryFile:
    """Implements `core.ports.DirectoryStore`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.directory = _load(path)
        self.listeners: set[Callable[[], None]] = set()

    def change(self, changed: Callable[[Directory], Directory]) -> Directory:
        directory = changed(self.directory)
        if directory != self.directory:
            _write(self._path, json.dumps(_plain(directory), indent=1))
            self.directory = directory
            for listener in tuple(self.listeners):
                listener()
        return directory


def _load(path: Path) -> Directory:
    try:
        data = json.loads(path.read_text("utf-8"))
        if data["version"] != _VERSION:
            raise Unavailable(f"{path} was written by a newer version of Trainshed.")
        return _read(data)
    except FileNotFoundError:
        return Directory()
    except OSError as error:
        raise Unavailable(f"The accounts in {path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unavailable(
            f"{path} has no accounts that can be read ({error!r}). Put one from a backup in its place."
        ) from error


def _write(path: Path, text: str) -> None:
    try:
        write_durably(path, text)
    except OSError as error:
        raise Unavailable(f"The accounts cannot be written to {path}: {error.strerror or error}.") from error


def _plain(directory: Directory) -> dict[str, object]:
    return {
        "version": _VERSION,
        "accounts": [
            {
                "name": account.name,
                "kind": account.kind,
                "displayName": account.display_name,
                "createdAt": account.created_at.isoformat(),
                "isDisabled": account.is_disabled,
                **_identity(account),
            }
            for account in directory.accounts.values()
        ],
        "groups": {name: sorted(members) for name, members in directory.groups.items()},
        "grants": [[grant.project, grant.role, grant.member] for grant in sorted(directory.grants)],
        "tokens": [
            {
                "id": token.id,
                "account": token.account,
                "title": token.title,
                "digest": token.digest,
                "createdAt": token.created_at.isoformat(),
                "expiresAt": token.expires_at.isoformat() if token.expires_at else None,
                "role": token.role,
                "projects": list(token.projects),
                **({"isSession": True} if token.is_session else {}),
            }
            for token in directory.tokens.values()
        ],
    }


def _identity(account: Account) -> dict[str, object]:
    identity = account.identity
    return {"identity": [identity.issuer, identity.subject]} if identity else {}


def _read(data: Mapping[str, Any]) -> Directory:
    accounts = [
        Account(
            name=row["name"],
            kind=AccountKind(row["kind"]),
            display_name=row["displayName"],
            created_at=datetime.fromisoformat(row["createdAt"]),
            is_disabled=row["isDisabled"],
            identity=ProviderIdentity(*row["identity"]) if "identity" in row else None,
        )
        for row in data["accounts"]
    ]
    tokens = [
        AccessToken(
            id=row["id"],
            account=row["account"],
            title=row["title"],
            digest=row["digest"],
            created_at=datetime.fromisoformat(row["createdAt"]),
            expires_at=datetime.fromisoformat(row["expiresAt"]) if row["expiresAt"] else None,
            role=Role(row["role"]) if row["role"] else None,
            projects=tuple(row["projects"]),
            is_session=row.get("isSession", False),
        )
        for row in data["tokens"]
    ]
    return Directory(
        accounts={account.name: account for account in accounts},
        groups={name: frozenset(members) for name, members in data["groups"].items()},
        grants=frozenset(RoleGrant(project, Role(role), member) for project, role, member in data["grants"]),
        tokens={token.id: token for token in tokens},
    )
