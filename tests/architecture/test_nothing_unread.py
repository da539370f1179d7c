"""No setting does nothing: whatever can be configured or is stored is read by something."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from pydantic import BaseModel

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.config.settings import Settings
from junhong_cmp.db.pool import Pool

SRC = Path(__file__).parents[2] / "src" / "junhong_cmp"
STAMPS = {"created_at", "updated_at", "recorded_at"}
"""When a row was written: for whoever looks into the database."""
STRUCTURE = {("polling_config_version", "only_row")}
TOLD = {"pause_reason"}
"""What an account has for people to read only."""


def sources(*, without: tuple[str, ...]) -> Iterator[str]:
    for path in sorted(SRC.rglob("*.py")):
        if not path.relative_to(SRC).as_posix().startswith(without):
            yield path.read_text(encoding="utf-8")


def attributes_read(*, without: tuple[str, ...]) -> set[str]:
    return {
        node.attr
        for text in sources(without=without)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def leaves(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from leaves(field.annotation)
        else:
            yield name


def test_every_setting_is_read_outside_of_the_configuration() -> None:
    assert set(leaves(Settings)) - attributes_read(without=("config/",)) == set()


def test_every_setting_of_an_account_is_obeyed_beyond_being_stored_and_shown() -> None:
    stored = {field.name for field in fields(CarrierAccount)}
    assert stored - attributes_read(without=("cards/account_store.py", "cli/")) == TOLD


async def test_every_column_is_named_where_its_table_is(pool: Pool) -> None:
    rows = await pool.fetch(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND table_name <> 'alembic_version'"
    )
    texts = [set(re.findall(r"\w+", text)) for text in sources(without=("db/migrations/",))]
    unread = {
        (row["table_name"], row["column_name"])
        for row in rows
        if row["column_name"] not in STAMPS
        and not any({row["table_name"], row["column_name"]} <= words for words in texts)
    }
    assert rows
    assert unread == STRUCTURE
