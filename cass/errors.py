"""Errors a person can act on, each with the exit status it ends a program with.

    CassError                 1    the whole message is str(self)
    ├── UsageError            2    wrong arguments
    ├── ConfigError           2    a configuration file is wrong: file, key, what was expected
    ├── MissingKey            2    the provider's API key is not set
    ├── Blocked               4    something was refused because nobody could be asked
    ├── decisions.Refused     4    the caller may not decide
    ├── NoChat               69    no such chat
    ├── NoWorker             69    no worker takes this chat's messages
    ├── Held                 69    another process holds this chat
    ├── WaitedTooLong       124    a timeout; the chat goes on
    ├── Interrupted         130    cancelled
    ├── ChatBroken            1    the chat file cannot be written, or was replaced
    ├── ToolError             1    a tool failed; becomes a result that the model reads
    └── ProviderError         1    the model's API failed

Only `cli` prints them. A failed tool call is a tool result, never the end of a worker. Anything else is a bug and
keeps its traceback.
"""

from dataclasses import dataclass


class CassError(Exception):
    """Something the person can act on: ``str(self)`` is the whole message, `status` the exit status."""

    status = 1


class UsageError(CassError):
    status = 2


class ConfigError(CassError):
    status = 2


class MissingKey(CassError):
    status = 2


class Blocked(CassError):
    status = 4


class NoChat(CassError):
    status = 69  # EX_UNAVAILABLE in sysexits.h


class NoWorker(CassError):
    status = 69


class Held(CassError):
    status = 69


class WaitedTooLong(CassError):
    status = 124  # as timeout(1)


class Interrupted(CassError):
    status = 130  # 128 + SIGINT, as shells report it


class ChatBroken(CassError):
    pass


class ToolError(CassError):
    """A tool could not do what it was asked; the text, after ``Error: ``, is what the model reads."""


@dataclass(eq=False)
class ProviderError(CassError):
    """The API of a model failed, in its own words."""

    message: str
    """What the server said, or what happened to the connection. Never holds the key."""
    url: str = ""
    http_status: int = 0
    """0 where no HTTP answer came (refused, reset, silent)."""
    transient: bool = False
    """Whether the same request may succeed later: 408, 409, 429, 5xx, connection errors, a cut stream."""
    retry_after: float | None = None
    """Seconds the server asked to wait, if it did."""
    too_long: bool = False
    """The request did not fit the model's context."""
    key_refused: bool = False
    """The API key was refused, or none was sent: 401, 403, or another status with words that say so."""

    def __str__(self) -> str:
        status = f"HTTP {self.http_status}: " if self.http_status else ""
        return f"{status}{self.message}" + (f" ({self.url})" if self.url else "")
