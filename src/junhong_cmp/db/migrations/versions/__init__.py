"""Revisions, named ``rNNNN_what``; the newest is ``junhong_cmp.db.schema.REQUIRED_VERSION``."""
