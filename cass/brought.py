"""Brought: what a host program gives to a session of its own: what it chooses, tools, and whoever answers."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from cass import config
from cass.config import Connection, Options, Settings
from cass.errors import UsageError
from cass.home import Home
from cass.providers import Provider
from cass.toolbox import Toolbox
from cass.tools.host import HostTool


class Chosen(TypedDict, total=False):
    """What a host program may choose; each as the option of that name of `cass`, and for this session only."""

    mode: str | None
    """``read-only``, ``workspace-edit`` or ``full-access``; a `Mode` is one of them."""
    model: str | None
    base_url: str | None
    api_key_env: str | None
    """Name of the variable that holds the key."""
    effort: str | None
    max_tokens: int | None
    max_turns: int | None
    max_cost: float | None
    max_tool_output: int | None
    sandbox: bool | None
    net: bool | None
    config: Path | None
    allowed_tools: Sequence[str] | None
    """Names of the only tools that the model is offered, as ``--tools`` takes them; those of `tools` are named, too."""


class Brought(NamedTuple):
    toolbox: Toolbox = Toolbox()
    provider: Provider | None = None
    """In place of one that the configuration describes; the session closes it."""
    options: Options = Options()
    """As the command line would say what it chooses."""

    @classmethod
    def of(cls, provider: str | Provider | None, tools: Iterable[HostTool], chosen: Chosen) -> "Brought":
        """Raises UsageError where two tools have one name, and for one text in place of names."""
        given: dict[str, Any] = {**chosen, "tools": chosen.get("allowed_tools")}
        given.pop("allowed_tools", None)
        if isinstance(given["tools"], str):
            raise UsageError("allowed_tools is a list of names, not one text")
        if isinstance(provider, str):
            return cls(Toolbox(tools), None, Options(provider=provider, **given))
        return cls(Toolbox(tools), provider, Options(**given))

    def settings(self, home: Home) -> Settings:
        """Settings of a new session. Raises ConfigError."""
        options = self.options
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
