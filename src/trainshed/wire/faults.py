"""Collects everything wrong with one request, with paths, and raises it once as Invalid.

Every parser of this package records into a `Faults` and calls `settle` at the end. A path is written in
snake_case from the body down: `job_spec.worker_pool_specs[1].machine_spec.machine_type`. A description that
begins with a capital is a whole sentence; any other continues the path.
"""

from trainshed.core.errors import Invalid, Violation

MOST = 1000  # an answer must not grow far beyond the request that caused it
SHOWN = 3  # violations in the message; the details have all


class Faults:
    """The violations of one request. `root` is Google's name for the body in its messages."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._found: dict[tuple[str, str], Violation] = {}
        self._touched: set[str] = set()  # the paths with faults, and their parents
        self._lost: set[str] = set()

    def add(self, path: str, sentence: str) -> None:
        """Record that the value at the path is wrong. Ignored below a path that `lose` recorded."""
        if not self._is_lost(path):
            self._keep(path, sentence)

    def lose(self, path: str, sentence: str) -> None:
        """Record that the value at the path could not be read. Later faults below it are ignored."""
        self._keep(path, sentence)
        self.hide(path)

    def hide(self, path: str) -> None:
        """Ignore later faults at or below the path: what is wrong there is recorded."""
        self._lost.add(path)

    def unknown(self, path: str, name: str) -> None:
        where = f"{self.root}.{path}" if path else self.root
        name = name[:100]
        self._keep(
            join(path, name),
            f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field.",
        )

    def under(self, path: str) -> bool:
        """Whether there is a fault at or below the path."""
        return path in self._touched

    def settle(self) -> None:
        """Raise Invalid with all violations, if there are any."""
        if self._found:
            raise invalid(tuple(self._found.values()))

    def _keep(self, path: str, sentence: str) -> None:
        if len(self._found) < MOST:
            self._found.setdefault((path, sentence), Violation(path, sentence))
        while path not in self._touched:
            self._touched.add(path)
            path = _parent(path)

    def _is_lost(self, path: str) -> bool:
        while self._lost and path:
            if path in self._lost:
                return True
            path = _parent(path)
        return False


def _parent(path: str) -> str:
    return path[: max(path.rfind("."), path.rfind("["), 0)]


def invalid(violations: tuple[Violation, ...]) -> Invalid:
    """The error with all violations. Its message has the first few."""
    first = [v.sentence for v in violations[:SHOWN]]
    more = len(violations) - len(first)
    return Invalid(violations, " ".join(first) + (f" And {more} more." if more else ""))


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
