"""PostgreSQL access: pool, schema and migrations, micro-batching, retries, notifications."""
