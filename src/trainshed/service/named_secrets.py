"""Use cases of a project's named secrets: create, set, list and delete them, and change the key of the home.

`api/named_secrets.py` calls it, and `JobService` asks it whether what a job refers to is there. No use case
returns a value. It never writes one anywhere but into the store.
"""

from dataclasses import dataclass

from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.named_secret import (
    MOST_VALUE,
    NAME_RULE,
    NamedSecret,
    NamedSecretStore,
    is_name,
    references,
)
from trainshed.core.ports import Clock


@dataclass(slots=True)
class NamedSecretService:
    store: NamedSecretStore
    clock: Clock

    async def create(self, project: str, secret: str, by: str) -> NamedSecret:
        """A secret without a value. Raises AlreadyExists."""
        if project == "-":
            raise Invalid((Violation("parent", "must name one project, not '-'."),))
        if not is_name(secret):
            raise Invalid((Violation("secret_id", f"must be {NAME_RULE}, not '{secret[:100]}'."),))
        made = NamedSecret(project=project, id=secret, created_at=self.clock.now(), created_by=by)
        await self.store.create(made)
        return made

    async def add_version(self, project: str, secret: str, value: bytes, by: str) -> NamedSecret:
        """The new value replaces the one before. Jobs that start from now on get it."""
        return await self.store.set(project, secret, read_value(value), self.clock.now(), by)

    async def get(self, project: str, secret: str) -> NamedSecret:
        return await self.store.get(project, secret)

    async def all(self, project: str) -> tuple[NamedSecret, ...]:
        return await self.store.all(project)

    async def delete(self, project: str, secret: str) -> None:
        """Jobs that run keep its value. Those that start later wait until it is set again."""
        await self.store.remove(project, secret)

    async def rotate_key(self) -> int:
        """How many values have the new key."""
        return await self.store.rotate()

    async def check(self, spec: JobSpec, project: str) -> None:
        """Raise Invalid for each variable that refers to a secret which has no value."""
        faults: list[Violation] = []
        for number, pool in enumerate(spec.pools):
            part = "python_package_spec" if pool.module else "container_spec"
            positions = {name: at for at, (name, _) in enumerate(pool.env)}
            for variable, secret in references(pool.env).items():
                if not await self._has_value(project, secret):
                    field = f"job_spec.worker_pool_specs[{number}].{part}.env[{positions[variable]}].value"
                    faults.append(Violation(field, _unset(variable, secret, project)))
        if faults:
            raise Invalid(tuple(faults))

    async def _has_value(self, project: str, secret: str) -> bool:
        try:
            return (await self.store.get(project, secret)).version > 0
        except NotFound:
            return False


def read_value(value: bytes) -> str:
    """The value as the text that a variable can have. What is refused is not repeated."""
    if not value or len(value) > MOST_VALUE:
        raise Invalid((Violation("payload.data", f"must have 1 to {MOST_VALUE} bytes, not {len(value)}."),))
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        sentence = "must be text in UTF-8 without NUL, as variables are: write other bytes in base64."
        raise Invalid((Violation("payload.data", sentence),))
    return text


def _unset(variable: str, secret: str, project: str) -> str:
    return (
        f"The variable {variable} names the secret '{secret}', which has no value in project '{project}': "
        f"set it with `trainshed secrets set {secret}`, or give the value itself."
    )
