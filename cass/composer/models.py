"""The models that a person can go on with: what is built in, what their files name, and what a local server lists."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cass import config, jsonl
from cass import models as facts_of
from cass.amounts import tokens
from cass.home import Home
from cass.known import PROVIDERS, is_local, listed

PATIENCE_S = 0.5
"""For all local servers together."""


class Model(NamedTuple):
    provider: str
    model: str
    context: int | None = None
    """Tokens it takes, where that is known."""

    @property
    def line(self) -> str:
        room = f"{tokens(self.context)} tokens" if self.context else ""
        return f"{self.provider:12} {self.model:48} {room}".rstrip()


def models(home: Home, provider: str, environ: Mapping[str, str]) -> list[Model]:
    """Those of `provider` first. Others only where there is a key, or a server on this machine that answers."""
    entries = {str(entry.get("id")): entry for entry in _entries(home.providers, "providers")}
    deadline = time.monotonic() + PATIENCE_S
    found: dict[tuple[str, str], Model] = {}
    for name in dict.fromkeys([provider, *entries, *PROVIDERS]):
        if name == provider or _is_usable(name, entries.get(name, {}), environ):
            for model in _of(name, entries.get(name, {}), home, deadline):
                found.setdefault((model.provider, model.model), model)
    return list(found.values())


def providers(home: Home) -> list[str]:
    """Ids of all that can be set up: the person's own first."""
    return list(dict.fromkeys([*(str(entry.get("id")) for entry in _entries(home.providers, "providers")), *PROVIDERS]))


def configured(home: Home, environ: Mapping[str, str]) -> tuple[str, str]:
    """Provider and model that new chats begin with. Raises ConfigError."""
    settings = config.load(home, config.Options(), environ, probe=False)
    return settings.connection.provider, settings.model


def _is_usable(name: str, entry: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    known = PROVIDERS.get(name)
    variables = [entry.get("api_key_env"), known.key if known else None, str(entry.get("api_key", "")).lstrip("$")]
    url = str(entry.get("base_url") or (known.base_url if known else ""))
    has_key = any(environ.get(str(variable)) for variable in variables if variable) or bool(entry.get("api_key"))
    return has_key or (bool(url) and is_local(url)) or entry.get("kind") == "demo"


def _of(name: str, entry: Mapping[str, Any], home: Home, deadline: float) -> Iterator[Model]:
    known = PROVIDERS.get(name)
    url = str(entry.get("base_url") or (known.base_url if known else ""))
    named = [entry.get("default_model"), *entry.get("models", ()), known.model if known else None]
    for model in named:
        id = model.get("id") if isinstance(model, dict) else model
        if id:
            yield Model(name, str(id), facts_of.find(name, str(id), url).context)
    for facts in _entries(home.models, "models"):
        if facts.get("provider") == name and facts.get("id"):
            yield Model(name, str(facts["id"]), facts.get("context_length"))
    if url and is_local(url):
        for id, length in listed(url, deadline).items():
            yield Model(name, id, length)


def _entries(path: Path, key: str) -> list[dict[str, Any]]:
    """The objects of ``{key: [...]}``; a file that is wrong is said when it is used, and is no list of choices."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        entries = jsonl.load(path.read_bytes()).get(key, [])
        return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return []
