"""Kept connections are used again only if nothing has come over them since."""

import aiohttp
from aiohttp.connector import Connection


class StaleConnectionError(aiohttp.ClientConnectionError):
    """A kept connection held an answer that nobody had asked for; it is closed, and nothing was sent."""


class CheckedRequest(aiohttp.ClientRequest):
    """A checked request is not sent over a connection on which an answer lies already.

    Else that answer would be taken for the one to this request, and each later one for the one to its next.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Send the request, or raise StaleConnectionError before its first byte."""
        if conn.protocol is not None and len(conn.protocol):
            raise StaleConnectionError
        return await super().send(conn)
