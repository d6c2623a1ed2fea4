"""Brought: what a host program adds to a session of its own, as Python objects: tools, and whoever answers."""

import os
from collections.abc import Iterable
from typing import NamedTuple

from cass import config
from cass.config import Connection, Options, Settings
from cass.errors import UsageError
from cass.home import Home
from cass.providers import Provider
from cass.toolbox import Toolbox
from cass.tools.host import HostTool


class Brought(NamedTuple):
    toolbox: Toolbox = Toolbox()
    provider: Provider | None = None
    """In place of one that the configuration describes; the session closes it."""

    @classmethod
    def of(cls, provider: str | Provider | None, tools: Iterable[HostTool]) -> "Brought":
        """Raises UsageError where two tools have one name."""
        return cls(Toolbox(tools), None if isinstance(provider, str) else provider)

    def settings(self, home: Home, options: Options) -> Settings:
        """Settings of a new session. Raises ConfigError."""
        if self.provider is None:
            return config.load(home, options, os.environ)
        if options.base_url or options.api_key_env:
            raise UsageError("a provider that is an object has an address and a key of its own")
        name = str(getattr(self.provider, "name", type(self.provider).__name__))
        model = options.model or name
        # The demo needs no key and asks no server; all but its connection holds for whoever answers in its place.
        found = config.load(home, options._replace(provider="demo", model=model), os.environ)
        notices = tuple(notice for notice in found.notices if not notice.startswith("demo:"))
        return config.with_model(found._replace(connection=Connection(name, "host"), notices=notices), home, model)
