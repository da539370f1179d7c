"""What import tests share: accounts, a storage, and a file put into it."""

import hashlib

import asyncpg
import pytest
from tests.imports.card_files import Announcements, PutFile
from tests.imports.runs import ImportRuns

from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.store import NewImport, create_import
from junhong_cmp.storage.store import Storage, open_storage


@pytest.fixture
def announcements() -> Announcements:
    return Announcements()


@pytest.fixture
def storage() -> Storage:
    return open_storage("memory://")


@pytest.fixture
async def account(pool: asyncpg.Pool) -> CarrierAccount:
    async with pool.acquire() as conn:
        return await record_account(conn, NewAccount(code="acc", name="测试账户", carrier=Carrier.CMCC))


@pytest.fixture
async def other_account(pool: asyncpg.Pool) -> CarrierAccount:
    async with pool.acquire() as conn:
        return await record_account(conn, NewAccount(code="other", carrier=Carrier.CMCC))


@pytest.fixture
def put_file(pool: asyncpg.Pool, storage: Storage, account: CarrierAccount) -> PutFile:
    async def put(data: bytes) -> ImportTask:
        digest = hashlib.sha256(data).hexdigest()
        await storage.put(f"files/{digest}", data)
        new = NewImport(
            account_id=account.id,
            file_name="cards.csv",
            file_key=f"files/{digest}",
            file_sha256=digest,
            file_bytes=len(data),
        )
        async with pool.acquire() as conn:
            return await create_import(conn, new)

    return put


@pytest.fixture
def runs(pool: asyncpg.Pool, storage: Storage, put_file: PutFile) -> ImportRuns:
    return ImportRuns(pool, storage, put_file)
