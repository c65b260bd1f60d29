"""Shares and what they use, as JSON. For `api/shares.py`."""

from trainshed.core.queue.share import Amounts
from trainshed.core.queue.share_report import ShareRow

Json = dict[str, object]


def render_share(row: ShareRow) -> Json:
    """What is set has the names of the file; memory is in bytes."""
    share = row.share
    return {
        "name": share.name,
        **({"parent": share.parent} if share.parent else {}),
        "projects": list(share.projects),
        "weight": share.weight,
        "depth": row.depth,
        "nominal": _numbers(row.nominal),
        **({"borrow": _numbers(share.borrow)} if share.borrow else {}),
        **({"lend": _numbers(share.lend)} if share.lend else {}),
        **({"perUser": _numbers(share.per_user)} if share.per_user else {}),
        **({"budget": str(share.budget)} if share.budget is not None else {}),
        "used": _numbers(row.used),
        "usedLately": _numbers(row.past),
        "running": {standing.value: count for standing, count in row.standings.items()},
        "waiting": row.waiting,
    }


def _numbers(amounts: Amounts) -> Json:
    return {item: round(amount, 6) for item, amount in sorted(amounts.items())}
