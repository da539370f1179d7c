"""Redis keys of the gateway's limits; each script touches one key, so any of them may lie in any slot."""


def last_change(card_id: int) -> str:
    """STRING: the request that last changed the card; it lives as long as the card must rest."""
    return f"gateway:change:{card_id}"
