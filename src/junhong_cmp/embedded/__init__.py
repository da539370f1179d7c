"""The no-set-up default: private Redis and PostgreSQL as child processes in a data folder."""
