"""Settings: what the flags, the environment, the files of the home and the built-in table say together.

    flag > CASS_PROVIDER, CASS_MODEL, CASS_MODE, CASS_MAX_TOKENS > config.json > providers.json > built in

Nothing chosen: the first provider whose key variable is set, else a local server that answers, else `demo`. A wrong
value is an error that names file, key and what was expected; an unknown key is a notice. Keys are never shown.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from cass.access import Mode, Rules, is_rule
from cass.errors import ConfigError, MissingKey
from cass.home import Home
from cass.instructions import instructions as instructions
from cass.known import ASSUMED_CONTEXT, CONTEXTS, PROBED, PROVIDERS, Known, Quirks, is_base_url, is_local, listed

KINDS = ("openai-compatible", "openai-responses", "anthropic", "gemini", "demo")
LAYOUTS = ("inline", "panes")
_COMPATIBLE = "openai-compatible"

PROBE_S = 0.1
DEMO_DELAY_MS = 4
MAX_TOKENS = 8_192
MAX_TOOL_OUTPUT = 100_000
SHOWN_TOOL_OUTPUT = 2_000
READ_TIMEOUT_S = 120.0
LOCAL_READ_TIMEOUT_S = 600.0
"""A machine without a GPU may read a long prompt for minutes before its first byte."""

DEMO_NOTICE = (
    "demo: offline, no language model is answering; set FIREWORKS_API_KEY (or another provider's key), "
    'or name a "default_provider" in {config}'
)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says, for this run only; None: nothing."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    mode: str | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    max_tool_output: int | None = None
    effort: str | None = None
    layout: str | None = None
    config: Path | None = None
    """In place of ``config.json``."""


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
    read_timeout_s: float = READ_TIMEOUT_S
    """Seconds without a byte after which a stream has ended."""
    quirks: Quirks = field(default_factory=Quirks)
    script: str | None = None
    """Kind ``demo``: path of a JSON list of steps to answer with."""
    delay_ms: int = DEMO_DELAY_MS
    """Kind ``demo``: between two deltas."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a run goes by."""

    connection: Connection
    model: str
    mode: Mode = Mode.READ_ONLY
    rules: Rules = field(default_factory=Rules)
    max_tokens: int = MAX_TOKENS
    """Output tokens of one answer, reasoning included."""
    max_tokens_said: bool = False
    """Whether the person chose `max_tokens`; if not, it follows the model."""
    max_turns: int | None = None
    """Requests of one turn; None: no limit."""
    max_tool_output: int = MAX_TOOL_OUTPUT
    """Characters of one tool result that the model gets."""
    context_limit: int = ASSUMED_CONTEXT
    """Tokens that the model takes, input and output together."""
    context_assumed: bool = True
    """Whether `context_limit` is a guess, because nothing is known about the model."""
    supports_tools: bool = True
    effort: str | None = None
    show_reasoning: bool = False
    ui_tool_result_limit: int = SHOWN_TOOL_OUTPUT
    """Characters of one tool result that a screen shows."""
    layout: str | None = None
    notices: tuple[str, ...] = ()


# ---- files ----------------------------------------------------------------------------------------------------------

Check = tuple[Callable[[Any], bool], str]


def _one_of(*words: str) -> Check:
    return (lambda value: value in words), "one of " + ", ".join(words)


def _list_of(check: Check) -> Check:
    return (lambda value: isinstance(value, list) and all(check[0](item) for item in value)), f"a list of {check[1]}"


_TEXT: Check = (lambda value: isinstance(value, str) and value.strip() != "", "a text")
_ANY_TEXT: Check = (lambda value: value is None or isinstance(value, str), "a text")
_FLAG: Check = (lambda value: isinstance(value, bool), "true or false")
_COUNT: Check = (lambda value: type(value) is int and value > 0, "a whole number above 0")
_SECONDS: Check = (lambda value: type(value) in (int, float) and value > 0, "a number of seconds above 0")
_ADDRESS = (
    "that begins with http:// or https:// and holds neither password nor key: "
    'name the variable of a key with --api-key-env, or as "api_key_env"'
)
_URL: Check = (
    lambda value: isinstance(value, str) and is_base_url(value),
    f"a URL {_ADDRESS}",
)
_VARIABLE: Check = (
    lambda value: isinstance(value, str) and value.isascii() and (value.isidentifier() or not value),
    "the name of a variable, of letters, digits and _, not the key itself",
)
_KEY: Check = (
    lambda value: isinstance(value, str) and (value[:1] != "$" or _VARIABLE[0](value[1:])),
    "a key, or $ and the name of the variable that holds it",
)
_OBJECT: Check = (lambda value: isinstance(value, dict), "an object")
_RULES = _list_of((lambda value: isinstance(value, str) and is_rule(value), "rules such as shell(git status)"))

_CONFIG: dict[str, Check] = {
    "default_provider": _TEXT,
    "default_model": _TEXT,
    "provider": _TEXT,
    "model": _TEXT,
    "base_url": _URL,
    "api_key_env": _VARIABLE,
    "default_access_mode": _one_of(*Mode),
    "default_reasoning_effort": _ANY_TEXT,
    "model_tool_result_limit": _COUNT,
    "ui_tool_result_limit": _COUNT,
    "show_reasoning": _FLAG,
    "editing": _one_of("emacs", "vi"),
    "notify": _one_of("off", "bell", "all"),
    "confirm_destructive_operations": _FLAG,
    "max_tokens": _COUNT,
    "max_turns": _COUNT,
    "read_timeout_s": _SECONDS,
    "layout": _one_of(*LAYOUTS),
    "allow": _RULES,
    "ask": _RULES,
    "deny": _RULES,
}
_PROVIDER: dict[str, Check] = {
    "id": _TEXT,
    "name": _ANY_TEXT,
    "kind": _one_of(*KINDS),
    "base_url": _URL,
    "api_key": _KEY,
    "api_key_env": _VARIABLE,
    "default_model": _ANY_TEXT,
    "models": _list_of((lambda value: isinstance(value, (str, dict)), "names or objects")),
    "read_timeout_s": _SECONDS,
    "script": _TEXT,
}
_MODEL: dict[str, Check] = {
    "id": _TEXT,
    "provider": _ANY_TEXT,
    "name": _ANY_TEXT,
    "context_length": _COUNT,
    "max_output_tokens": _COUNT,
    "supports_tools": _FLAG,
    "reasoning": _OBJECT,
}


@dataclass(frozen=True, slots=True)
class _Files:
    """The three files, checked."""

    config: dict[str, Any]
    providers: dict[str, dict[str, Any]]
    models: list[dict[str, Any]]
    notices: tuple[str, ...]
    config_path: Path

    @classmethod
    def read(cls, home: Home, config: Path | None) -> "_Files":
        notices: list[str] = []
        path = config or home.config
        if config is not None and not config.is_file():
            raise ConfigError(f"{config}: no such file")
        settings = _checked(_object(path), _CONFIG, str(path), notices)
        providers = _entries(home.providers, "providers", _PROVIDER, notices)
        models = _entries(home.models, "models", _MODEL, notices)
        return cls(settings, {entry["id"]: entry for entry in providers}, models, tuple(notices), path)


def _object(path: Path) -> dict[str, Any]:
    """The JSON object of a file; empty where there is no file."""
    try:
        value = orjson.loads(path.read_bytes().removeprefix(b"\xef\xbb\xbf") or b"{}")
    except FileNotFoundError:
        return {}
    except OSError as e:
        raise ConfigError(f"{path}: {e.strerror}") from e
    except json.JSONDecodeError as e:
        raise ConfigError(f"{path}: line {e.lineno}, column {e.colno}: {e.msg}; expected JSON") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a JSON object, {{...}}")
    return value


def _entries(path: Path, key: str, checks: dict[str, Check], notices: list[str]) -> list[dict[str, Any]]:
    """The checked objects of ``{key: [...]}``."""
    entries = _checked(_object(path), {key: _list_of(_OBJECT)}, str(path), notices).get(key, [])
    for number, entry in enumerate(entries):
        if "id" not in entry:
            raise ConfigError(f'{path}: {key}[{number}]: expected an "id"')
    return [_checked(entry, checks, f"{path}: {entry['id']}", notices) for entry in entries]


def _checked(values: dict[str, Any], checks: dict[str, Check], where: str, notices: list[str]) -> dict[str, Any]:
    """`values` whose keys are known; null counts as absent. Raises ConfigError."""
    known: dict[str, Any] = {}
    for key, value in values.items():
        if key not in checks:
            notices.append(f'{where}: unknown key "{key}"')
        elif value is not None:
            passes, expected = checks[key]
            if not passes(value):
                raise ConfigError(f'{where}: "{key}": expected {expected}')
            known[key] = value
    return known


# ---- settings -------------------------------------------------------------------------------------------------------


def load(home: Home, options: Options, environ: Mapping[str, str], *, probe: bool = True) -> Settings:
    """Settings of a run. Raises ConfigError. `probe`: whether local servers are asked, for 100 ms at most."""
    files = _Files.read(home, options.config)
    config = files.config
    connection = _connection(files, options, environ, probe)
    model, length = _model(files, options, environ, connection, probe)
    said = options.max_tokens or _number(environ, "CASS_MAX_TOKENS") or config.get("max_tokens")
    settings = Settings(
        connection=connection,
        model=model,
        mode=_mode(options, environ, config),
        rules=_rules(config),
        max_tokens=said or MAX_TOKENS,
        max_tokens_said=said is not None,
        max_turns=options.max_turns or config.get("max_turns"),
        max_tool_output=options.max_tool_output or config.get("model_tool_result_limit", MAX_TOOL_OUTPUT),
        show_reasoning=config.get("show_reasoning", False),
        ui_tool_result_limit=config.get("ui_tool_result_limit", SHOWN_TOOL_OUTPUT),
        layout=_layout(options.layout or environ.get("CASS_LAYOUT")) or config.get("layout"),
        notices=(*files.notices, *_remarks(home, files, connection)),
    )
    return _for_model(settings, files.models, length, options.effort or config.get("default_reasoning_effort"))


def with_model(settings: Settings, home: Home, model: str, effort: str | None = None) -> Settings:
    """The same connection with another model, or another effort. Raises ConfigError."""
    models = _entries(home.models, "models", _MODEL, [])
    return _for_model(replace(settings, model=model), models, None, effort or settings.effort)


def _for_model(settings: Settings, models: list[dict[str, Any]], length: int | None, effort: str | None) -> Settings:
    """`settings` with what is known about their model. `length`: of its context, as its server said."""
    meant = (None, settings.connection.provider)
    facts = next((entry for entry in models if entry["id"] == settings.model and entry.get("provider") in meant), {})
    known = facts.get("context_length") or length or CONTEXTS.get(settings.model)
    limit = known or ASSUMED_CONTEXT
    # Unless it is said otherwise an answer may take a quarter of a small context, and what the model can put out.
    longest = min(MAX_TOKENS, limit // 4, facts.get("max_output_tokens", MAX_TOKENS))
    effort = effort or facts.get("reasoning", {}).get("default_effort")
    return replace(
        settings,
        max_tokens=settings.max_tokens if settings.max_tokens_said else longest,
        context_limit=limit,
        context_assumed=known is None,
        supports_tools=facts.get("supports_tools", True),
        effort=None if effort in (None, "", "none", "off") else str(effort),
    )


def require_key(settings: Settings) -> None:
    """Raise MissingKey where the provider's key is not set."""
    connection = settings.connection
    if connection.api_key is None and connection.api_key_env is not None:
        raise MissingKey(f"set {connection.api_key_env}: it holds the API key of {connection.provider}")


def secret_names(home: Home) -> frozenset[str]:
    """Variables that hold API keys: of the built-in table, and of the files as far as they can be read."""
    entries = _readable(home.providers).get("providers")
    said = [_readable(home.config), *(entries if isinstance(entries, list) else [])]
    names = [known.key for known in PROVIDERS.values()]
    for place in said:
        if isinstance(place, dict):
            stored = place.get("api_key")
            names += [place.get("api_key_env"), stored[1:] if isinstance(stored, str) and stored[:1] == "$" else None]
    return frozenset(name for name in names if isinstance(name, str) and name)


def _readable(path: Path) -> dict[str, Any]:
    try:
        return _object(path)
    except ConfigError:
        return {}


def _mode(options: Options, environ: Mapping[str, str], config: Mapping[str, Any]) -> Mode:
    given = options.mode or environ.get("CASS_MODE")
    if given and given not in tuple(Mode):
        where = "the access mode" if options.mode else "CASS_MODE"
        raise ConfigError(f"{where} is {given!r}: expected one of {', '.join(Mode)}")
    return Mode(given or config.get("default_access_mode", Mode.READ_ONLY))


def _layout(given: str | None) -> str | None:
    if given and given not in LAYOUTS:
        raise ConfigError(f"the layout is {given!r}: expected one of {', '.join(LAYOUTS)}")
    return given


def _rules(config: Mapping[str, Any]) -> Rules:
    allow, ask, deny = (tuple(config.get(key, ())) for key in ("allow", "ask", "deny"))
    return Rules(allow, ask, deny, config.get("confirm_destructive_operations", False))


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    if text and not (text.isdecimal() and int(text) > 0):
        raise ConfigError(f"{name}: expected a whole number above 0")
    return int(text) if text else None


def _remarks(home: Home, files: _Files, connection: Connection) -> list[str]:
    """What the person must know about the connection."""
    kind = files.providers.get(connection.provider, {}).get("kind")
    if connection.kind == "demo":
        return [] if connection.script else [DEMO_NOTICE.format(config=files.config_path)]
    if kind not in (None, connection.kind):
        return [f"{home.providers}: {connection.provider}: {kind} is spoken in its {connection.kind} form"]
    return []


# ---- connection -----------------------------------------------------------------------------------------------------


def _connection(files: _Files, options: Options, environ: Mapping[str, str], probe: bool) -> Connection:
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
    kind = "demo" if "demo" in (said, entry.get("kind")) else _COMPATIBLE
    url = (base_url or _form(entry.get("kind", kind), entry.get("base_url", "")) or known.base_url).strip()
    if kind != "demo" and not _URL[0](url):
        raise ConfigError(f"provider {said}: expected a base_url {_ADDRESS}")
    if not _VARIABLE[0](options.api_key_env or ""):
        raise ConfigError(f"--api-key-env: expected {_VARIABLE[1]}")
    # A built-in or stored key goes to its own address, or where the person names provider and address together.
    own = not options.base_url or named is not None
    name, key = _key(
        options.api_key_env or here.get("api_key_env"), entry if own else {}, known if own else None, environ
    )
    patience = LOCAL_READ_TIMEOUT_S if is_local(url) else READ_TIMEOUT_S
    return Connection(
        provider=said,
        kind=kind,
        base_url=url,
        api_key=key,
        api_key_env=name,
        read_timeout_s=entry.get("read_timeout_s") or files.config.get("read_timeout_s") or patience,
        quirks=known.quirks if url == known.base_url else replace(known.quirks, max_tokens_field="max_tokens"),
        script=(environ.get("CASS_DEMO_SCRIPT") or entry.get("script")) if kind == "demo" else None,
        delay_ms=_number(environ, "CASS_DEMO_DELAY_MS") or DEMO_DELAY_MS,
    )


def _configured(files: _Files) -> str | None:
    """The provider that ``config.json`` names; a kind without an address means the default one, as in Cassady."""
    named: str | None = files.config.get("default_provider") or files.config.get("provider")
    if named == _COMPATIBLE and named not in files.providers and "base_url" not in files.config:
        return next(iter(PROVIDERS))
    return named


def _here(files: _Files, named: str | None) -> dict[str, Any]:
    """``config.json`` where it speaks of the provider in use: another one has neither its address, key nor model."""
    return files.config if named in (None, _configured(files)) else {}


def _source(files: _Files, options: Options, environ: Mapping[str, str]) -> str:
    """Who named the provider."""
    if options.provider:
        return "--provider"
    if environ.get("CASS_PROVIDER"):
        return "CASS_PROVIDER"
    return f'{files.config_path}: "{"default_provider" if "default_provider" in files.config else "provider"}"'


def _form(kind: str, base_url: str) -> str:
    """Address of the OpenAI-compatible form beside the native one of `kind`."""
    url = base_url.strip().rstrip("/")
    if kind == "anthropic" and url and not url.endswith("/v1"):
        return url + "/v1"
    if kind == "gemini" and url and not url.endswith("/openai"):
        return url + ("/openai" if url.endswith("/v1beta") else "/v1beta/openai")
    return base_url


def _key(
    asked: str | None, entry: Mapping[str, Any], known: Known | None, environ: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """Name of the variable, if one is meant, and the key."""
    stored = (entry.get("api_key") or "").strip()
    name = asked or (stored[1:] if stored.startswith("$") else entry.get("api_key_env")) or None
    if name is None and stored:
        return None, _clean(stored, f"the api_key of provider {entry['id']}")
    if name is None and known is not None and not entry.get("base_url"):
        name = known.key
    return name, _clean(environ.get(name, ""), name) if name else None


def _clean(key: str, where: str) -> str | None:
    """`key` without the line end that was copied with it; None where nothing is left."""
    key = key.strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError(f"{where}: expected an API key, of ASCII characters without spaces")
    return key or None


def _choose(files: _Files, environ: Mapping[str, str], probe: bool) -> str:
    """The provider where nothing is chosen."""
    for id, known in {**PROVIDERS, **dict.fromkeys(files.providers)}.items():
        if _key(None, files.providers.get(id, {}), known, environ)[1]:
            return id
    deadline = time.monotonic() + PROBE_S
    return next((id for id in PROBED if probe and listed(PROVIDERS[id].base_url, deadline)), "demo")


# ---- model ----------------------------------------------------------------------------------------------------------


def _model(
    files: _Files, options: Options, environ: Mapping[str, str], connection: Connection, probe: bool
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
