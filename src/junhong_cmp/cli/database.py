"""The database of a command that does one thing and ends."""

from junhong_cmp.config.connections import PostgresSettings
from junhong_cmp.db.pool import Pool, open_pool


async def open_configured_pool(settings: PostgresSettings, *, application_name: str = "junhong") -> Pool:
    """Open a small pool as the settings say; the caller closes it."""
    return await open_pool(
        settings.dsn.get_secret_value(),
        max_size=2,
        application_name=application_name,
        pgbouncer=settings.pgbouncer,
    )
