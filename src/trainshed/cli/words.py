"""The server's JSON in words for people: states, ages, durations, sizes, exits."""

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from typing import Any, TypeAlias

    Json: TypeAlias = dict[str, Any]
else:
    Json = dict


def part(whole: Json, name: str) -> Json:
    """The object under a name; an empty one where there is none."""
    value: object = whole.get(name)
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def parts(whole: Json, name: str) -> "list[Any]":
    """The list under a name; an empty one where there is none."""
    value: object = whole.get(name)
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def pools(job: Json) -> list[Json]:
    return parts(part(job, "jobSpec"), "workerPoolSpecs")


def state(value: object) -> str:
    return str(value or "UNKNOWN").removeprefix("JOB_STATE_")


def identity(job: Json) -> str:
    """The id, the last part of a resource name."""
    return str(job.get("name", "")).rsplit("/", 1)[-1]


def location(job: Json) -> str:
    """The location in a resource name."""
    parts = str(job.get("name", "")).split("/")
    return parts[3] if len(parts) > 3 else ""


def moment(text: object) -> "datetime | None":
    if not isinstance(text, str) or not text:
        return None
    from datetime import UTC, datetime

    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def age(text: object, now: "datetime") -> str:
    at = moment(text)
    return span(now - at) if at else ""


def span(length: "timedelta") -> str:
    """A length of time in its two largest units at most: `20ms`, `3.5s`, `5m 10s`, `2h 5m`, `4d 3h`."""
    seconds = max(0.0, length.total_seconds())
    if 0 < seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if 0 < seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    units = (("d", whole // 86400), ("h", whole // 3600 % 24), ("m", whole // 60 % 60), ("s", whole % 60))
    first = next((at for at, (_, count) in enumerate(units) if count), 0)
    return " ".join(f"{count}{unit}" for unit, count in units[first : first + 2] if count) or "0s"


def range_of(eta: Json, now: "datetime") -> str | None:
    """Between which times a job is likely to start; None where nothing or one time is known."""
    first, last = moment(eta.get("likelyFrom")), moment(eta.get("likelyTo"))
    if first is None or last is None:
        return None
    return f"in {span(first - now)} to {span(last - now)}" if first > now else f"within {span(last - now)}"


def clock(text: object, *, date: bool = True) -> str:
    """Local time, as the person's wall shows it."""
    at = moment(text)
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S") if at else ""


def size(count: object) -> str:
    number = float(str(count)) if count else 0.0
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.3g} {unit}" if number < 1000 else f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.3g} TiB"


def number(value: object) -> str:
    """A count in three digits at most, without a trailing `.0`."""
    return f"{float(str(value)):.3g}" if value not in (None, "") else ""


def exit_of(replica: Json) -> str:
    ending = part(replica, "exit")
    if not ending:
        return ""
    text = ending.get("text")
    if text:
        return str(text)
    if ending.get("signal") is not None:
        return f"signal {ending['signal']}"
    return f"code {ending['code']}" if ending.get("code") is not None else "lost"


def replica_count(job: Json) -> int:
    return sum(pool_count(pool) for pool in pools(job))


def pool_count(pool: Json) -> int:
    """An empty pool only holds its place; one that names no count has one replica."""
    return int(pool.get("replicaCount") or (1 if pool else 0))


def progress(report: Json) -> str:
    """`3/100 (3%), 2m left`, or as much of it as is known."""
    if report.get("step") is None:
        return ""
    text = f"{report['step']:.9g}"
    if report.get("total") is not None:
        text += f"/{report['total']:.9g}"
    if report.get("fraction") is not None:
        text += f" ({report['fraction'] * 100:.0f}%)"
    left = str(report.get("timeLeft") or "").removesuffix("s")
    if not left:
        return text
    from datetime import timedelta

    return f"{text}, {span(timedelta(seconds=float(left)))} left"


def key_of(fields: Json, name: str) -> str:
    """The name as it is written there: a file may call its fields in either style."""
    return next((key for key in fields if key.replace("_", "").lower() == name.lower()), name)
