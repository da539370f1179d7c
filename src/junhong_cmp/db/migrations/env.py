"""Alembic's environment: it only renders SQL; ``junhong_cmp.db.migrate`` runs it over asyncpg."""

from alembic import context

context.configure(dialect_name="postgresql")
context.run_migrations()
