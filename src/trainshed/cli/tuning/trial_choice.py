"""Which trials of a study are shown where there is not room for all."""

from trainshed.cli.tuning import trial_words
from trainshed.cli.tuning.trial_table import identity
from trainshed.client import Client, Json

ORDER = (
    ("id desc", ("ACTIVE", "STOPPING")),
    ("id desc", trial_words.ENDED),
    ("id", ("REQUESTED",)),
)


def chosen_trials(client: Client, study: Json, best: list[str], rows: int) -> list[Json]:
    """At most so many, by number: those that run, the newest that ended, those to come; always the best."""
    studies, name = client.studies(), str(study["name"])
    trials: list[Json] = []
    for order, states in ORDER:
        if (room := rows - len(trials)) > 0:
            where = " OR ".join(f"state={state}" for state in states)
            trials += studies.trials(name, order_by=order, filter=where, limit=room)
    if best and trials and best[0] not in map(identity, trials):
        first = studies.trials(name, order_by=best_first(study), filter="state=SUCCEEDED", limit=1)
        trials = [*trials[: rows - 1], *first]
    return sorted(trials, key=lambda trial: int(identity(trial)))


def best_first(study: Json) -> str:
    """The order of trials by the first objective."""
    goals = trial_words.objectives(study)
    return "value desc" if goals and goals[0][1] else "value"
