"""SecretCipher: seals values of secrets with AES-256-GCM under keys in one file of the home (decision 67).

`SecretFiles` and `NamedSecretFiles` use one together, and its lock. The file is made at the first use. The
first key in it seals; the others only open what was sealed before. The library is imported at the first use,
because most servers start without secrets. It never makes a new key while there are values of a lost one.
"""

import base64
import json
import os
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainshed.core.errors import Unavailable
from trainshed.disk.folder_sync import write_durably

SEALED = "sealed"  # the field of a file that has what `seal` returned
_KEPT = 2  # keys after a rotation: a backup may have begun before it
_BITS, _NONCE = 256, 12


class SecretCipher:
    def __init__(self, file: Path, folder: Path) -> None:
        """`folder` has all files with sealed values."""
        self._file, self._folder = file, folder
        self._keys: dict[str, bytes] = {}  # by id, the one that seals first; read at the first use
        self.lock = threading.RLock()  # of who reads and then writes a file with sealed values

    def seal(self, value: bytes, about: str) -> dict[str, str]:
        """Opened only with the same `about`, so that no value can be put in the place of another."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        with self.lock:
            identity, key = next(iter(self._known(make=True).items()))
        nonce = os.urandom(_NONCE)
        data = AESGCM(key).encrypt(nonce, value, about.encode())
        return {"key": identity, "nonce": _text(nonce), "data": _text(data)}

    def open(self, sealed: Mapping[str, Any], about: str) -> bytes:
        """Raises Unavailable where the key is missing, ValueError where the value is damaged."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        with self.lock:
            key = self._known().get(str(sealed.get("key")))
        if key is None:
            raise Unavailable(
                f"The file {self._file} does not have the key {sealed.get('key')}: put it back from the "
                "backup that has the values, or set the values again."
            )
        try:
            return AESGCM(key).decrypt(_bytes(sealed["nonce"]), _bytes(sealed["data"]), about.encode())
        except (InvalidTag, KeyError) as error:
            raise ValueError("it was changed since it was sealed") from error

    def is_current(self, sealed: Mapping[str, Any]) -> bool:
        with self.lock:
            return str(sealed.get("key")) == next(iter(self._known()), "")

    def add_key(self) -> None:
        """A new key that seals from now on; all others stay."""
        with self.lock:
            self._write({_identity(): _key(), **self._known(make=True)})

    def drop_old_keys(self) -> None:
        """Call it once everything is sealed with the first key. The one before stays, for backups."""
        with self.lock:
            self._write(dict(list(self._known().items())[:_KEPT]))

    def _known(self, *, make: bool = False) -> dict[str, bytes]:
        if not self._keys:
            try:
                stored = json.loads(self._file.read_bytes())
                self._keys = {str(row["id"]): _bytes(row["key"]) for row in stored["keys"]}
            except FileNotFoundError:
                self._check_unused()
                if make:
                    self._write({_identity(): _key()})
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise Unavailable(
                    f"The keys of secrets cannot be read from {self._file}: {error}. "
                    "Put the file back from a backup."
                ) from error
        return self._keys

    def _check_unused(self) -> None:
        mark = f'"{SEALED}"'.encode()
        if any(mark in file.read_bytes() for file in self._folder.rglob("*.json")):
            raise Unavailable(
                f"The file {self._file} with the keys of secrets is gone: put it back from a backup. Without "
                f"it the values in {self._folder} are lost; remove that folder to begin anew."
            )

    def _write(self, keys: dict[str, bytes]) -> None:
        rows = [{"id": identity, "key": _text(key)} for identity, key in keys.items()]
        write_whole(self._file, json.dumps({"keys": rows}))
        self._keys = keys


def write_whole(file: Path, text: str) -> None:
    """As a whole or not at all, durable, for the owner alone. Raises Unavailable."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(file, text)
    except OSError as error:
        raise Unavailable(f"Secrets cannot be stored: {error.strerror}.") from error


def _identity() -> str:
    return secrets.token_hex(4)


def _key() -> bytes:
    return secrets.token_bytes(_BITS // 8)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: object) -> bytes:
    return base64.b64decode(str(text), validate=True)
