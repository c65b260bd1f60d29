"""PodVariables: the variables of a pod, and which of their values the secret of its job has instead. Pure.

`pod.py` renders them and the backend keeps the secret. A value that is secret is never in a pod. Neither is a
text that grows with the job, such as the addresses of all its replicas: whoever watches pods gets the whole
pod at each change, so a thousand pods with a thousand addresses each would keep everybody busy. The pods of a
large gang do not even repeat the variables that all replicas of a pool have: the init takes them from one.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainshed.backends.cluster.objects import Object
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.secret import env_with_files

# For the init; programs do not see them.
TOKEN, NAMES, TEXT = "TRAINSHED_POD_TOKEN", "TRAINSHED_POD_NAMES", "TRAINSHED_POD_TEXT_"
COMMON, SEPARATOR = "TRAINSHED_POD_COMMON", "\x1e"  # NAME=VALUE, and what is between two of them
MOST_NAMES = 64  # of which a pod waits for the addresses
MANY = 64  # replicas of a gang whose pods are kept small
_FOR_RUNTIMES = ("NVIDIA_", "AMD_")  # how names of variables begin that runtimes of containers read
SECRETS = "/trainshed/secrets"  # where programs find the secrets that are files
_LONG = 2048  # characters of a text that is in the secret
_CLUSTER, _CLUSTER_END = '{"cluster": ', "]}"  # around the addresses in TF_CONFIG and CLUSTER_SPEC


@dataclass(frozen=True, slots=True, kw_only=True)
class PodVariables:
    launch: Launch
    secret: str  # the name of the job's
    domain: str  # in which the names of replicas are
    shared: frozenset[str] = frozenset()  # variables whose values are secret, and those of the whole job
    common: Mapping[str, str] = field(default_factory=dict[str, str])  # that all replicas of its pool have

    def render(self) -> list[Object]:
        """In this order: a value that has a text of the secret in it comes after that text."""
        texts = self._texts()
        result = [self._from_secret(TOKEN, "token")]
        if len(names := self._names()) > _LONG:
            result.append(self._from_secret(NAMES, _text_key(names)))
        elif names:
            result.append({"name": NAMES, "value": literal(names)})
        if self.common:
            result.append(self._from_secret(COMMON, _text_key(self._common_text())))
        result += [self._from_secret(name, _text_key(text)) for text, name in texts.items()]
        hidden = self._hidden
        for name, value in variables_of(self.launch).items():
            if name in hidden:
                result.append(self._from_secret(name, self._key(name)))
            elif name in self.common:
                continue
            elif text := _long_text(value):
                before, after = map(literal, value.split(text, 1))
                result.append({"name": name, "value": f"{before}$({texts[text]}){after}"})
            else:
                result.append({"name": name, "value": literal(value)})
        return result

    def kept(self) -> dict[str, str]:
        """What the job's secret has for this replica, beside the token."""
        texts = [*self._texts()]
        if len(names := self._names()) > _LONG:
            texts.append(names)
        if self.common:
            texts.append(self._common_text())
        env, hidden = self.launch.env, self._hidden
        secrets = {self._key(name): value for name, value in env.items() if name in hidden}
        secrets |= {file_key(name): content for name, content in self.launch.secret_files.items()}
        return secrets | {_text_key(text): text for text in texts}

    @property
    def _hidden(self) -> frozenset[str]:
        return _hidden(self.launch, self.shared)

    def _names(self) -> str:
        peers = self.launch.peers if len(self.launch.peers) > 1 else ()
        return " ".join(f"{peer}.{self.domain}" for peer in peers[:MOST_NAMES])

    def _common_text(self) -> str:
        return SEPARATOR.join(f"{name}={value}" for name, value in self.common.items())

    def _texts(self) -> dict[str, str]:
        """The long parts of values, each with the name of a variable for it."""
        env, hidden = self.launch.env, self._hidden
        texts = (_long_text(value) for name, value in env.items() if name not in hidden)
        return {text: f"{TEXT}{number}" for number, text in enumerate(dict.fromkeys(filter(None, texts)))}

    def _from_secret(self, name: str, key: str) -> Object:
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": self.secret, "key": key}}}

    def _key(self, variable: str) -> str:
        """In the secret: those of one replica alone bear its name."""
        replica = self.launch.key.name
        whose = "all" if variable in self.shared else f"{replica.pool}.{replica.index}"
        return f"{whose}.{_digest(variable)}"


class CommonVariables:
    """What the replicas of each pool of a large gang have in common, as far as they were seen."""

    def __init__(self) -> None:
        self._by_job: dict[str, dict[int, dict[str, str]]] = {}  # by number of the pool

    def see(self, launch: Launch, shared: frozenset[str]) -> Mapping[str, str]:
        """This replica has them too: it may take fewer for common than the one before."""
        if len(launch.peers) <= MANY:
            return {}
        hidden = _hidden(launch, shared)
        own = {
            name: value
            for name, value in variables_of(launch).items()
            if name not in hidden and _may_be_common(name, value)
        }
        pools, pool = self._by_job.setdefault(launch.key.name.job, {}), launch.key.name.pool
        common = pools.setdefault(pool, own)
        if not common.items() <= own.items():
            common = pools[pool] = {name: value for name, value in common.items() if own.get(name) == value}
        return common

    def forget(self, job: str) -> None:
        self._by_job.pop(job, None)


def variables_of(launch: Launch) -> dict[str, str]:
    """The program's, without those that are about its files."""
    return {"PYTHONUNBUFFERED": "1", **env_with_files(launch, SECRETS), "TRAINSHED_RUN": str(launch.key)}


def file_key(name: str) -> str:
    """In the secret: that of a file. All replicas have the same."""
    return f"file.{name}"


def _hidden(launch: Launch, shared: frozenset[str]) -> frozenset[str]:
    """The variables whose values no pod may show."""
    return launch.secrets | shared


def _may_be_common(name: str, value: str) -> bool:
    """Not what the container's runtime reads before there is an init."""
    return not name.startswith(_FOR_RUNTIMES) and SEPARATOR not in value and not _long_text(value)


def _long_text(value: str) -> str:
    """The addresses of all replicas in a value, where they are many."""
    if len(value) <= _LONG or not value.startswith(_CLUSTER):
        return ""
    end = value.find(_CLUSTER_END) + len(_CLUSTER_END)
    return value[len(_CLUSTER) : end] if end > _LONG else ""


def _text_key(text: str) -> str:
    return f"text.{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def literal(text: str) -> str:
    """Text in which Kubernetes finds no $(VARIABLE)."""
    return text.replace("$", "$$")
