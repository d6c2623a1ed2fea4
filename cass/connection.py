"""Connection: the provider that a run asks, its address, its key and its model, chosen by what flags, environment,
files and the built-in table say together.

Nothing chosen: the first provider whose key variable is set, else a local server that answers, else `demo`.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cass.errors import ConfigError
from cass.known import PROBED, PROVIDERS, Known, Quirks, is_local, listed
from cass.written import ADDRESS, KINDS, URL, VARIABLE, Written

_COMPATIBLE = "openai-compatible"

PROBE_S = 0.1
DEMO_DELAY_MS = 4
READ_TIMEOUT_S = 120.0
LOCAL_READ_TIMEOUT_S = 600.0
"""A machine without a GPU may read a long prompt for minutes before its first byte."""


class Options(NamedTuple):
    """What the command line says, for this run only; None: nothing."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    mode: str | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    max_cost: float | None = None
    max_tool_output: int | None = None
    effort: str | None = None
    layout: str | None = None
    sandbox: bool | None = None
    net: bool | None = None
    config: Path | None = None
    """In place of ``config.json``."""
    tools: Sequence[str] | None = None
    """Names of the only tools that the model is offered; with ``*`` in those of MCP servers."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the model is asked, and how."""

    provider: str
    kind: str
    base_url: str = ""
    """As configured; with or without the version, a final slash, or the whole path."""
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    """The variable that should hold the key; set while `api_key` is None: the key is missing."""
    keyring: bool = False
    """Whether the key is in the system's keyring: it is fetched when the provider is first reached."""
    read_timeout_s: float = READ_TIMEOUT_S
    """Seconds without a byte after which a stream has ended."""
    read_timeout_said: bool = False
    """Whether the person chose `read_timeout_s`; if not, a model that reasons is waited for longer."""
    quirks: Quirks = field(default_factory=Quirks)
    script: str | None = None
    """Kind ``demo``: path of a JSON list of steps to answer with."""
    delay_ms: int = DEMO_DELAY_MS
    """Kind ``demo``: between two deltas."""


def connect(files: Written, options: Options, environ: Mapping[str, str], probe: bool) -> Connection:
    """The connection of a run. `probe`: whether local servers are asked. Raises ConfigError."""
    named = options.provider or environ.get("CASS_PROVIDER")
    here = _here(files, named)
    base_url = options.base_url or here.get("base_url")
    said = named or _configured(files) or (_COMPATIBLE if base_url else _choose(files, environ, probe))
    if said not in PROVIDERS and said not in files.providers and said not in KINDS:
        names = ", ".join(dict.fromkeys([*files.providers, *PROVIDERS]))
        raise ConfigError(f"{_source(files, options, environ)}: expected one of {names}; not {said!r}")
    if options.base_url and not options.provider and "demo" in (said, files.providers.get(said, {}).get("kind")):
        said = _COMPATIBLE  # the demo has no address: a flag that names one means a server
    known, entry = PROVIDERS.get(said, Known(said, "")), files.providers.get(said, {})
    given = base_url or entry.get("base_url") or ""
    kind = _kind(said, known, entry, given)
    url = (given or (known.compatible_url if kind == _COMPATIBLE else "") or known.base_url).strip()
    if kind not in ("demo", "local") and not URL[0](url):
        raise ConfigError(f"provider {said}: expected a base_url {ADDRESS}")
    if not VARIABLE[0](options.api_key_env or ""):
        raise ConfigError(f"--api-key-env: expected {VARIABLE[1]}")
    # A built-in or stored key goes to its own address, or where the person names provider and address together.
    own = not options.base_url or named is not None
    name, key = _key(
        options.api_key_env or here.get("api_key_env"), entry if own else {}, known if own else None, environ
    )
    timeout_s = entry.get("read_timeout_s") or files.config.get("read_timeout_s")
    patience = LOCAL_READ_TIMEOUT_S if is_local(url) else READ_TIMEOUT_S
    return Connection(
        provider=said,
        kind=kind,
        base_url=url,
        api_key=key,
        api_key_env=name,
        keyring=own and key is None and options.api_key_env is None and entry.get("keyring", False),
        read_timeout_s=timeout_s or patience,
        read_timeout_said=timeout_s is not None,
        quirks=known.quirks if url == known.base_url else known.quirks._replace(max_tokens_field="max_tokens"),
        script=(environ.get("CASS_DEMO_SCRIPT") or entry.get("script")) if kind == "demo" else None,
        delay_ms=whole_number(environ, "CASS_DEMO_DELAY_MS") or DEMO_DELAY_MS,
    )


def _configured(files: Written) -> str | None:
    """The provider that ``config.json`` names; a kind without an address means the default one, as in Cassady."""
    named: str | None = files.config.get("default_provider") or files.config.get("provider")
    if named == _COMPATIBLE and named not in files.providers and "base_url" not in files.config:
        return next(iter(PROVIDERS))
    return named


def _here(files: Written, named: str | None) -> dict[str, Any]:
    """``config.json`` where it speaks of the provider in use: another one has neither its address, key nor model."""
    return files.config if named in (None, _configured(files)) else {}


def _source(files: Written, options: Options, environ: Mapping[str, str]) -> str:
    """Who named the provider."""
    if options.provider:
        return "--provider"
    if environ.get("CASS_PROVIDER"):
        return "CASS_PROVIDER"
    return f'{files.config_path}: "{"default_provider" if "default_provider" in files.config else "provider"}"'


def _kind(said: str, known: Known, entry: Mapping[str, Any], url: str) -> str:
    """The API that is spoken with provider `said`: as a file says, else as the given address tells, else its own.

    `url`: the address that was given, "" for the provider's own. Elsewhere than at OpenAI its key and name mean what
    all such servers have in common.
    """
    if "demo" in (said, entry.get("kind")):
        return "demo"
    if said in KINDS and said not in PROVIDERS:
        return said
    told: str | None = entry.get("kind") or _told(url)
    elsewhere = urlsplit(url).hostname not in (None, urlsplit(known.base_url).hostname)
    return told or (_COMPATIBLE if elsewhere and known.kind == "openai-responses" else known.kind)


def _told(url: str) -> str | None:
    """The kind that an address speaks of, where it is that of a request; None: it may be any."""
    path = urlsplit(url.strip()).path.rstrip("/")
    if ":streamGenerateContent" in path:
        return "gemini"
    ends = {"/chat/completions": _COMPATIBLE, "/openai": _COMPATIBLE}
    ends |= {"/messages": "anthropic", "/responses": "openai-responses"}
    return next((kind for end, kind in ends.items() if path.endswith(end)), None)


def _key(
    asked: str | None, entry: Mapping[str, Any], known: Known | None, environ: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """Name of the variable, if one is meant, and the key."""
    stored = (entry.get("api_key") or "").strip()
    name = asked or (stored[1:] if stored.startswith("$") else entry.get("api_key_env")) or None
    if name is None and stored:
        return None, clean(stored, f"the api_key of provider {entry['id']}")
    if entry.get("keyring") and asked is None:
        return None, None
    if name is None and known is not None and not entry.get("base_url"):
        name = known.key
    return name, clean(environ.get(name, ""), name) if name else None


def clean(key: str, where: str) -> str | None:
    """`key` without the line end that was copied with it; None where nothing is left."""
    key = key.strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError(f"{where}: expected an API key, of ASCII characters without spaces")
    return key or None


def _choose(files: Written, environ: Mapping[str, str], probe: bool) -> str:
    """The provider where nothing is chosen."""
    for id, known in {**PROVIDERS, **dict.fromkeys(files.providers)}.items():
        if _key(None, files.providers.get(id, {}), known, environ)[1]:
            return id
    deadline = time.monotonic() + PROBE_S
    return next((id for id in PROBED if probe and listed(PROVIDERS[id].base_url, deadline)), "demo")


def whole_number(environ: Mapping[str, str], name: str) -> int | None:
    """A number above 0 in the environment. Raises ConfigError."""
    text = environ.get(name, "").strip()
    if text and not (text.isdecimal() and int(text) > 0):
        raise ConfigError(f"{name}: expected a whole number above 0")
    return int(text) if text else None


# ---- model ----------------------------------------------------------------------------------------------------------


def choose_model(
    files: Written, options: Options, environ: Mapping[str, str], connection: Connection, probe: bool
) -> tuple[str, int | None]:
    """The model, and the length of its context if its server said so."""
    here = _here(files, options.provider or environ.get("CASS_PROVIDER"))
    known = PROVIDERS.get(connection.provider, Known(connection.provider, ""))
    entry = files.providers.get(connection.provider, {})
    model = (
        options.model
        or environ.get("CASS_MODEL")
        or here.get("default_model")
        or here.get("model")
        or entry.get("default_model")
        or known.model
        or next((m if isinstance(m, str) else m.get("id", "") for m in entry.get("models", ())), "")
    )
    # A server is asked where only it can know: which model it has, or how long the context is that it was given.
    at_hand = probe and is_local(connection.base_url) and (not model or connection.provider in PROVIDERS)
    found = listed(connection.base_url, time.monotonic() + PROBE_S) if at_hand else {}
    if not model and not is_local(connection.base_url):
        raise ConfigError(f'provider {connection.provider}: expected a model: --model, or "default_model" in a file')
    model = model or next(iter(found), "default")
    return model, found.get(model)
