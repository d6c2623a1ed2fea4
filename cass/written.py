"""Written: what a person's `config.json`, `providers.json` and `models.json` say, checked key by key.

A wrong value is an error that names file, key and what was expected; an unknown key is a notice; null counts as absent.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from cass import hooks
from cass.access import Mode
from cass.environment import is_entry
from cass.errors import ConfigError
from cass.home import Home, create_private, make_private
from cass.known import PROVIDERS, is_base_url
from cass.rules import is_rule
from cass.web.hosts import EXPECTED as HOSTS
from cass.web.hosts import is_entry as is_host

KINDS = ("openai-compatible", "openai-responses", "anthropic", "gemini", "local", "demo")
LAYOUTS = ("inline", "panes")

Check = tuple[Callable[[Any], bool], str]
Closer = tuple[Callable[[Any], bool], Callable[[Any], str]]
"""A check that says of a value what is wrong with it."""


def _one_of(*words: str) -> Check:
    return (lambda value: value in words), "one of " + ", ".join(words)


def _list_of(check: Check) -> Check:
    return (lambda value: isinstance(value, list) and all(check[0](item) for item in value)), f"a list of {check[1]}"


_TEXT: Check = (lambda value: isinstance(value, str) and value.strip() != "", "a text")
_ANY_TEXT: Check = (lambda value: value is None or isinstance(value, str), "a text")
_FLAG: Check = (lambda value: isinstance(value, bool), "true or false")
_COUNT: Check = (lambda value: type(value) is int and value > 0, "a whole number above 0")
_AMOUNT: Check = (lambda value: type(value) in (int, float) and value > 0, "USD, a number above 0")
_SECONDS: Check = (lambda value: type(value) in (int, float) and value > 0, "a number of seconds above 0")
ADDRESS = (
    "that begins with http:// or https:// and holds neither password nor key: "
    'name the variable of a key with --api-key-env, or as "api_key_env"'
)
URL: Check = (
    lambda value: isinstance(value, str) and is_base_url(value),
    f"a URL {ADDRESS}",
)
VARIABLE: Check = (
    lambda value: isinstance(value, str) and value.isascii() and (value.isidentifier() or not value),
    "the name of a variable, of letters, digits and _, not the key itself",
)
_KEY: Check = (
    lambda value: isinstance(value, str) and (value[:1] != "$" or VARIABLE[0](value[1:])),
    "a key, or $ and the name of the variable that holds it",
)
_DIRECTORY: Check = (
    lambda value: (
        isinstance(value, str) and value.startswith(("/", "~/")) and os.path.normpath(value) not in ("/", "~")
    ),
    "directories such as ~/.cargo or /srv/cache",
)
_OBJECT: Check = (lambda value: isinstance(value, dict), "an object")
_PRICE = ("input", "output", "cache_read", "cache_write")
_PRICES: Check = (
    lambda value: (
        isinstance(value, dict)
        and {"input", "output"} <= value.keys() <= set(_PRICE)
        and all(type(price) in (int, float) and price >= 0 for price in value.values())
    ),
    f"USD for a million tokens, as {{{', '.join(_PRICE)}}}; the last two may be left out",
)
_RULES = _list_of((lambda value: isinstance(value, str) and is_rule(value), "rules such as shell(git status)"))

_CONFIG: dict[str, Check | Closer] = {
    "default_provider": _TEXT,
    "default_model": _TEXT,
    "provider": _TEXT,
    "model": _TEXT,
    "base_url": URL,
    "api_key_env": VARIABLE,
    "default_access_mode": _one_of(*Mode),
    "default_reasoning_effort": _ANY_TEXT,
    "model_tool_result_limit": _COUNT,
    "ui_tool_result_limit": _COUNT,
    "show_reasoning": _FLAG,
    "editing": _one_of("emacs", "vi"),
    "notify": _one_of("off", "bell", "all"),
    "confirm_destructive_operations": _FLAG,
    "sandbox": _FLAG,
    "net": _FLAG,
    "sandbox_write": _list_of(_DIRECTORY),
    "fetch_private": _list_of((lambda value: isinstance(value, str) and is_host(value), HOSTS)),
    "max_tokens": _COUNT,
    "max_turns": _COUNT,
    "max_cost": _AMOUNT,
    "max_agents": (lambda value: type(value) is int and value >= 0, "a whole number, 0 for none"),
    "read_timeout_s": _SECONDS,
    "layout": _one_of(*LAYOUTS),
    "allow": _RULES,
    "ask": _RULES,
    "deny": _RULES,
    "hooks": (hooks.is_some, hooks.expected),
    "tools": _list_of((_TEXT[0], "names of tools")),
    "shell_env": _list_of((lambda value: isinstance(value, str) and is_entry(value), "NAME, NAM* or NAME=value")),
}
_PROVIDER: dict[str, Check] = {
    "id": _TEXT,
    "name": _ANY_TEXT,
    "kind": _one_of(*KINDS),
    "base_url": URL,
    "api_key": _KEY,
    "api_key_env": VARIABLE,
    "keyring": _FLAG,
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
    "supports_images": _FLAG,
    "reasoning": _OBJECT,
    "prices": _PRICES,
}
_REASONING: dict[str, Check] = {
    "supported": _FLAG,
    "required": _FLAG,
    "default_effort": _ANY_TEXT,
    "request_format": _ANY_TEXT,
}
KEYS = tuple({**_CONFIG, **_PROVIDER, **_MODEL, **_REASONING})
"""All that the files know, for whoever misspells one."""


# ---- reading --------------------------------------------------------------------------------------------------------


class Written(NamedTuple):
    """The three files, checked."""

    config: dict[str, Any]
    providers: dict[str, dict[str, Any]]
    models: list[dict[str, Any]]
    notices: tuple[str, ...]
    config_path: Path

    @classmethod
    def read(cls, home: Home, config: Path | None) -> "Written":
        notices: list[str] = []
        path = config or home.config
        if config is not None and not config.is_file():
            raise ConfigError(f"{config}: no such file")
        settings = _checked(_object(path), _CONFIG, str(path), notices)
        providers = _entries(home.providers, "providers", _PROVIDER, notices)
        return cls(settings, {entry["id"]: entry for entry in providers}, models(home, notices), tuple(notices), path)


def review(home: Home) -> dict[Path, tuple[str | None, list[str]]]:
    """For each of the three files the first thing that is wrong in it, if anything is, and all that is odd."""
    reads: dict[Path, Callable[[list[str]], object]] = {
        home.config: lambda notices: _checked(_object(home.config), _CONFIG, str(home.config), notices),
        home.providers: lambda notices: _entries(home.providers, "providers", _PROVIDER, notices),
        home.models: lambda notices: models(home, notices),
    }
    found: dict[Path, tuple[str | None, list[str]]] = {}
    for path, read in reads.items():
        notices: list[str] = []
        try:
            read(notices)
            found[path] = (None, notices)
        except ConfigError as e:
            found[path] = (str(e), notices)
    return found


def models(home: Home, notices: list[str]) -> list[dict[str, Any]]:
    """The entries of ``models.json``; what is odd about them is added to `notices`. Raises ConfigError."""
    found = _entries(home.models, "models", _MODEL, notices)
    for entry in found:
        if "reasoning" in entry:
            where = f'{home.models}: {entry["id"]}: "reasoning"'
            entry["reasoning"] = _checked(entry["reasoning"], _REASONING, where, notices)
    return found


def secret_names(home: Home) -> frozenset[str]:
    """Variables that hold API keys: of the built-in table, and of the files as far as they can be read."""
    entries = readable(home.providers).get("providers")
    said = [readable(home.config), *(entries if isinstance(entries, list) else [])]
    names = [known.key for known in PROVIDERS.values()]
    for place in said:
        if isinstance(place, dict):
            stored = place.get("api_key")
            names += [place.get("api_key_env"), stored[1:] if isinstance(stored, str) and stored[:1] == "$" else None]
    return frozenset(name for name in names if isinstance(name, str) and name)


def stored_keys(home: Home) -> list[str]:
    """API keys that stand in the files themselves, as far as those can be read."""
    entries = readable(home.providers).get("providers")
    keys = [entry.get("api_key") for entry in (entries if isinstance(entries, list) else []) if isinstance(entry, dict)]
    return [key for key in keys if isinstance(key, str) and key[:1] != "$"]


def readable(path: Path) -> dict[str, Any]:
    """What a file says; empty where there is none, or it cannot be read."""
    try:
        return _object(path)
    except ConfigError:
        return {}


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


def _checked(
    values: dict[str, Any], checks: Mapping[str, Check | Closer], where: str, notices: list[str]
) -> dict[str, Any]:
    """`values` whose keys are known; null counts as absent. Raises ConfigError."""
    known: dict[str, Any] = {}
    for key, value in values.items():
        if key not in checks:
            notices.append(f'{where}: unknown key "{key}"')
        elif value is not None:
            passes, expected = checks[key]
            if not passes(value):
                said = expected if isinstance(expected, str) else expected(value)
                raise ConfigError(f'{where}: "{key}": expected {said}')
            known[key] = value
    return known


# ---- writing --------------------------------------------------------------------------------------------------------


def change(path: Path, values: dict[str, Any]) -> None:
    """Set keys of a file, None takes one out; all else stays as it is. Raises ConfigError where it cannot be read."""
    _write(path, _merged(_object(path), values))


def change_entry(path: Path, key: str, values: dict[str, Any]) -> None:
    """The same in the entry of ``{key: [...]}`` with the id of `values`; an entry of no more than an id goes."""
    whole = _object(path)
    entries = _checked(whole, {key: _list_of(_OBJECT)}, str(path), []).get(key, [])
    found: dict[str, Any] = next((entry for entry in entries if entry.get("id") == values["id"]), {})
    entry = _merged(found, values)
    kept = [entry if other is found else other for other in entries] + ([] if found else [entry])
    _write(path, {**whole, key: [other for other in kept if other is not entry or len(entry) > 1]})


def _merged(old: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**old, **values}.items() if name not in values or value is not None}


def _write(path: Path, value: dict[str, Any]) -> None:
    """Replace a file in one step, readable by its owner alone; where it is a link, what it leads to."""
    make_private(path.parent)
    target = Path(os.path.realpath(path))
    new = target.with_name(f".{target.name}.{os.getpid()}")
    fd = create_private(new, os.O_TRUNC)
    try:
        with os.fdopen(fd, "wb") as opened:
            opened.write(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
            opened.flush()
            os.fsync(fd)
        os.replace(new, target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
