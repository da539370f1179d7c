"""Card imports: an operator's file becomes cards in the database and in the polling shards."""
