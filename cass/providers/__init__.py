"""Providers: whoever answers a request, each behind the same two methods.

A kind is one module of pure functions (a builder of requests, a parser of answers) and one row in `connect`; `http`
alone does I/O, and alone imports httpx.
"""

import importlib
from collections.abc import AsyncIterator
from typing import Protocol

from cass.config import Connection
from cass.context import Request
from cass.errors import ConfigError
from cass.records import Assistant, Delta


class Provider(Protocol):
    """Asks a model."""

    def stream(self, request: Request, of: str) -> AsyncIterator[Delta | Assistant]:
        """Deltas of the message `of` as they come, then the whole of it. Raises ProviderError.

        One try: repeating is the caller's decision. Closing the iterator, or cancelling the task, ends it at once.
        """
        ...

    async def aclose(self) -> None:
        """Give connections back."""
        ...


KINDS = {
    "openai-compatible": "openai_compatible",
    "openai-responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
"""The module of each kind that is spoken over HTTP."""


def connect(connection: Connection) -> Provider:
    """The provider of a connection; nothing is sent yet. Raises ConfigError."""
    # Late imports: a program that only reads a provider's row must not pay for httpx.
    if connection.kind == "demo":
        from cass.providers.demo import Demo

        return Demo(connection)
    if connection.kind not in KINDS:
        raise ConfigError(f"provider {connection.provider}: kind {connection.kind!r} is not known")
    from cass.providers.http import Http

    return Http(connection, importlib.import_module(f"cass.providers.{KINDS[connection.kind]}"))
