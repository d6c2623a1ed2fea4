"""Providers: whoever answers a request, each behind the same two methods.

A kind is one module of pure functions (a builder of requests, a parser of answers) and one row in `connect`; `http`
alone does I/O, and alone imports httpx.
"""

import importlib
import importlib.util
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from cass.config import Connection
from cass.context import Request
from cass.errors import ConfigError
from cass.jsonl import new_id, now
from cass.records import Assistant, Delta, User

if TYPE_CHECKING:
    from cass.providers.http import Http

_WORDS = 1_024
"""Output tokens of a trial: some models reason before they say a word."""


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
    if connection.kind == "local":
        from cass.providers.local import Local

        return Local(connection)
    if connection.kind not in KINDS:
        raise ConfigError(f"provider {connection.provider}: kind {connection.kind!r} is not known")
    return _http(unlocked(connection))


def _http(connection: Connection) -> "Http":
    from cass.providers.http import Http

    return Http(connection, importlib.import_module(f"cass.providers.{KINDS[connection.kind]}"))


def unlocked(connection: Connection) -> Connection:
    """`connection` with its key, where the system's keyring has it. Raises ConfigError."""
    return replace(connection, api_key=open_ring().get(connection.provider)) if connection.keyring else connection


def has_ring() -> bool:
    """Whether keys can be kept in the system's keyring."""
    return importlib.util.find_spec("keyring") is not None


def open_ring() -> Any:
    """The module of the system's keyring. Raises ConfigError where its package is missing."""
    try:
        from cass.providers import ring as found
    except ModuleNotFoundError as e:
        from cass import extras

        raise ConfigError(f"the system's keyring needs a package: {extras.adding('keyring')}") from e
    return found


async def listed(connection: Connection) -> list[str]:
    """Ids of the models that a server lists, after it has taken the key. Raises ProviderError, ConfigError."""
    from cass.providers import roster

    connection = unlocked(connection)
    http = _http(connection)
    try:
        if (proof := roster.proof(connection)) is not None:
            await http.get(*proof)
        return roster.models(await http.get(*roster.ask(connection)))
    finally:
        await http.aclose()


async def tried(connection: Connection, model: str) -> None:
    """Have a model say a word. Raises ProviderError."""
    http = _http(unlocked(connection))
    user = User(id=new_id(), content="Say: ok", created_at=now())
    try:
        async for _ in http.stream(Request("", (user,), (), model, _WORDS), user.id):
            pass
    finally:
        await http.aclose()
