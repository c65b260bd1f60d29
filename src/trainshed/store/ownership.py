"""Tells a SQLite file of Trainshed from one of another program. `damage.py` asks before it is written to.

Trainshed writes a number into the header of its files. Files of older releases do not have it; they are known
by their table of migrations.
"""

import sqlite3
from pathlib import Path

from trainshed.core.errors import Unavailable
from trainshed.store.migrations import APPLICATION, MIGRATIONS
from trainshed.store.tables import SCHEMA_MIGRATIONS

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"


def check_owner(path: Path, connection: sqlite3.Connection) -> None:
    """Raise Unavailable where another program made the file."""
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application == APPLICATION:
        return
    tables = {str(name) for (name,) in connection.execute(_TABLES)}
    if application == 0 and (not tables or _has_migrations(connection, tables)):
        return
    shown = f"the tables {', '.join(sorted(tables)[:3])}" if tables else f"the application id {application}"
    raise Unavailable(
        f"{path} is the database of another program: it has {shown}. Nothing was changed. Move it away, or "
        "name another file with --database sqlite:///PATH."
    )


def _has_migrations(connection: sqlite3.Connection, tables: set[str]) -> bool:
    """Whether the migrations are ours, or a first start ended before the first of them."""
    columns = tuple(row[1] for row in connection.execute("PRAGMA table_info(schema_migrations)"))
    if columns != SCHEMA_MIGRATIONS:
        return False
    applied = {name for (name,) in connection.execute("SELECT name FROM schema_migrations")}
    return MIGRATIONS[0].name in applied or (not applied and len(tables) == 1)
