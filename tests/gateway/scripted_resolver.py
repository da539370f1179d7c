"""A name server of the test's own."""

import socket

from aiohttp.abc import AbstractResolver, ResolveResult


class ScriptedResolver(AbstractResolver):
    """A scripted resolver gives every name the same addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.closed = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.addresses
        ]

    async def close(self) -> None:
        self.closed = True
