"""Rows of ``import_task`` as import jobs."""

from dataclasses import fields
from typing import Final

import asyncpg

from junhong_cmp.imports.model import ImportStatus, ImportTask

IMPORT_COLUMNS: Final = ", ".join(field.name for field in fields(ImportTask))


def import_from_row(row: asyncpg.Record | None) -> ImportTask | None:
    """Build an import job from a row of all its columns; None stays None."""
    if row is None:
        return None
    return ImportTask(**{**row, "status": ImportStatus(row["status"])})
