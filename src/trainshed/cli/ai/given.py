"""What the flags of `create` add to the fields of a file: a flag wins over the file. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.ai.listing import pairs
from trainshed.client import Json
from trainshed.yaml_document import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An encryption key: whole, or in parts that project and region complete."""

    key: str | None = None
    keyring: str | None = None
    location: str | None = None
    project: str | None = None

    @classmethod
    def taken(cls, given: dict[str, Any]) -> "Key":
        """What the flags of `flags.encrypted` said; they are no longer among the given ones."""
        return cls(**{name: given.pop(f"kms_{name}") for name in ("key", "keyring", "location", "project")})

    def name(self, project: str, region: str) -> str:
        if not self.key or "/" in self.key:
            return self.key or ""
        if not self.keyring:
            raise Misspelt("--kms-key", "needs --kms-keyring, or a full name projects/…/cryptoKeys/KEY")
        place = f"projects/{self.project or project}/locations/{self.location or region}"
        return f"{place}/keyRings/{self.keyring}/cryptoKeys/{self.key}"


def with_flags(fields: Mapping[str, Any], given: Mapping[str, Any]) -> Json:
    """The fields, with those of the flags in place of theirs, however a file spells them."""
    given = {name: value for name, value in given.items() if value is not None}
    replaced = set(map(folded, given))
    return {**{name: value for name, value in fields.items() if folded(name) not in replaced}, **given}


def with_labels_and_key(body: Json, labels: Sequence[str], kms: Key, parent: tuple[str, str]) -> Json:
    """The body with what --labels and --kms-key say. `parent` is (project, region)."""
    result = dict(body)
    added = {name: value for text in labels for name, value in pairs(text, "--labels").items()}
    if added:
        kept = body.get("labels")
        result["labels"] = {**(cast(Json, kept) if isinstance(kept, dict) else {}), **added}
    if key := kms.name(*parent):
        result["encryptionSpec"] = {"kmsKeyName": key}
    return result
