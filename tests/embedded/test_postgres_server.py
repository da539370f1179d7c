"""A private PostgreSQL runs whoever we are: also under a number the machine knows no name for."""

import os
from pathlib import Path

import asyncpg
import pytest

from junhong_cmp.embedded.account import Account, alias_for
from junhong_cmp.embedded.binaries import find_postgres_programs
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres, PostgresPlace
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec

NAMELESS = Account("nameless", 54_321, 54_321)  # as containers run us: a number, no entry in /etc/passwd

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def place(data_folder: Path) -> PostgresPlace:
    return PostgresPlace(
        programs=find_postgres_programs(NAMELESS, lambda: data_folder),
        data_folder=data_folder / "cluster",
        socket_folder=data_folder / "socket",
        log_path=data_folder / "postgres.log",
        account=NAMELESS,
        durable=False,
    )


async def test_an_account_without_a_name_makes_and_runs_a_cluster(place: PostgresPlace) -> None:
    server = EmbeddedPostgres(place)
    await server.start()
    try:
        connection = await asyncpg.connect(server.dsn("postgres"))
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()
    finally:
        await server.stop()
    assert place.data_folder.stat().st_uid == NAMELESS.uid
    await server.start()
    await server.stop()


async def test_only_the_names_differ_for_a_program_with_an_alias(place: PostgresPlace) -> None:
    alias = alias_for(NAMELESS.uid)
    spec = ProcessSpec(
        name="id",
        arguments=["/usr/bin/id", "-u"],
        log_path=place.log_path,
        working_folder=Path("/"),
        account=NAMELESS,
        alias=alias,
    )
    process = ChildProcess(spec)
    process.start()
    assert await process.wait() == 0
    assert process.log_tail() == str(alias)
