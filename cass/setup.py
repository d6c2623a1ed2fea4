"""Setup: a provider, its key and a model are chosen, tried, and written down when they work.

Nothing is written that the provider's server has not taken; what else the person has in their files stays there.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import IO, Any, Protocol
from urllib.parse import urlsplit

from cass import providers, written
from cass.config import Connection, Options
from cass.connection import clean, connect
from cass.errors import ConfigError, MissingKey, ProviderError, UsageError
from cass.home import Home
from cass.known import MODEL_LISTS, PROVIDERS
from cass.written import Written


class Person(Protocol):
    """Whoever sits at the terminal."""

    def choose(self, question: str, choices: Sequence[str], at: int = 0) -> int: ...
    def text(self, question: str) -> str: ...
    def secret(self, question: str) -> str:
        """What is typed, which the terminal does not show."""


class Place(StrEnum):
    """Where a key is kept."""

    FILE = "file"
    KEYRING = "keyring"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is said beforehand; None: it is asked, or follows from the rest."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A key that is to be kept."""

    text: str
    place: Place


def setup(
    home: Home,
    wanted: Wanted,
    environ: Mapping[str, str],
    person: Person | None,
    say: Callable[[str], None],
    *,
    yes: bool = False,
) -> None:
    """Choose, try and write the default provider and model. `person`: None where nobody can be asked.

    `yes`: write without asking. Raises UsageError, ConfigError, MissingKey, ProviderError; then nothing is written.
    """
    files = Written.read(home, None)
    wanted = _named(wanted if wanted.provider or wanted.base_url else _asked(files, wanted, environ, person))
    id = str(wanted.provider)
    if id == _configured(files):  # what an older file says of its one provider moves into the entry of that
        here = files.config
        base_url, name = wanted.base_url or here.get("base_url"), wanted.api_key_env or here.get("api_key_env")
        wanted = replace(wanted, base_url=base_url, api_key_env=name)
    connection = _connection(files, id, wanted, environ)
    if connection.kind == _FROM_FILE:
        raise UsageError("a model from a file needs no setup: cass local MODEL.gguf")
    key = None
    if connection.api_key is None and connection.api_key_env:
        key = _key(connection, person)
        connection = replace(connection, api_key=key.text, api_key_env=None)
    model = "demo" if connection.kind == "demo" else _model(connection, wanted, person, say, is_given=key is not None)
    entry = _entry(files, id, wanted, key)
    config = {"default_provider": id, "default_model": model}
    said = [f"{home.config}: {', '.join(f'{name} = {value}' for name, value in config.items())}"]
    said += [f"{home.providers}: {id}: {_shown(entry)}"] if entry else []
    if not yes:
        if person is None:
            raise UsageError("nobody can be asked here; to write this, add --yes: " + "; ".join(said))
        if person.choose("Write this?\n  " + "\n  ".join(said), ["yes", "no"]):
            raise UsageError("nothing was written")
    if entry:
        _keep(home, id, entry, key)
    written.change(home.config, {**dict.fromkeys(("provider", "model", "base_url", "api_key_env")), **config})
    for line in said:
        say(f"written: {line}")
    for name in ("CASS_PROVIDER", "CASS_MODEL"):
        if environ.get(name):
            say(f"{name} is set in this environment, and stands above what is written: unset {name}")


def login(
    home: Home,
    provider: str,
    environ: Mapping[str, str],
    person: Person | None,
    stream: IO[str],
    say: Callable[[str], None],
    *,
    api_key_env: str | None = None,
    place: str | None = None,
) -> None:
    """Write down where the key of `provider` is, or keep the key itself, once its server has taken it.

    The key is asked for, or read from `stream` where nobody can be asked. `place`: one of `Place`. Raises UsageError,
    ConfigError, MissingKey, ProviderError; then nothing is written.
    """
    files = Written.read(home, None)
    connection = _connection(files, provider, Wanted(provider, api_key_env=api_key_env), environ, is_known=True)
    if connection.kind in ("demo", _FROM_FILE):
        raise UsageError(f"{provider} needs no key")
    key = None
    if api_key_env is None and (place or not environ.get(connection.api_key_env or "")):
        key = _given(provider, place, person, stream)
        connection = replace(connection, api_key=key.text, api_key_env=None, keyring=False)
    if connection.api_key is None:
        raise MissingKey(f"{connection.api_key_env} is not set: set it first, so that it can be tried")
    count = len(_listed(connection, is_given=key is not None))
    name = api_key_env or connection.api_key_env
    entry = _entry(files, provider, Wanted(api_key_env=name), key)
    _keep(home, provider, entry, key)
    if provider == _configured(files) and "api_key_env" in files.config:
        written.change(home.config, {"api_key_env": None})
    say(f"the key works: {provider} lists {count} models")
    say(f"written: {home.providers}: {provider}: {_shown(entry)}")


def _given(provider: str, place: str | None, person: Person | None, stream: IO[str]) -> Key:
    """The key that the person types, hidden, or sends on standard input. Raises UsageError."""
    if place is None and person is None:
        raise UsageError("say where the key is to be kept: --api-key-env NAME, --file or --keyring")
    if place is None and person is not None:
        places = {Place.FILE: "in providers.json, which only you can read"}
        if providers.has_ring():
            places[Place.KEYRING] = "in the system's keyring"
        chosen = person.choose("Where is the key to be kept?", [*places.values(), "in a variable of the environment"])
        if chosen == len(places):
            raise UsageError(f"export the variable in your shell, then: cass login {provider} --api-key-env NAME")
        place = list(places)[chosen]
    if place == Place.KEYRING:
        providers.open_ring()
    text = person.secret(f"API key of {provider}") if person else stream.readline()
    key = clean(text, "the key")
    if key is None:
        raise UsageError("no key was given")
    return Key(key, Place(str(place)))


def logout(home: Home, provider: str, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Forget the key of `provider`, wherever cass keeps it. Raises ConfigError."""
    entry = Written.read(home, None).providers.get(provider)
    if entry is None and provider not in PROVIDERS:
        raise ConfigError(f"no provider {provider!r} in {home.providers}")
    known = PROVIDERS.get(provider)
    names = [(entry or {}).get("api_key_env"), known.key if known else None]
    if entry is not None and any(name in entry for name in _KEY_FIELDS):
        if entry.get("keyring"):
            providers.open_ring().remove(provider)
        written.change_entry(home.providers, "providers", {"id": provider, **dict.fromkeys(_KEY_FIELDS)})
        say(f"forgotten: {home.providers}: {provider}: the key")
    else:
        say(f"{home.providers} holds no key of {provider}")
    for name in dict.fromkeys(filter(None, names)):
        if environ.get(name):
            say(f"{name} is still set in this environment: unset {name}")


# ---- choosing -------------------------------------------------------------------------------------------------------

_FROM_FILE = "local"
"""The kind, and the built-in provider, that serves a model from a file: there is nothing to set up."""
_OFFERED = [id for id in PROVIDERS if id != _FROM_FILE]
_KEY_FIELDS = ("api_key", "api_key_env", "keyring")


def _configured(files: Written) -> str | None:
    return files.config.get("default_provider") or files.config.get("provider")


def _named(wanted: Wanted) -> Wanted:
    """`wanted` with a provider: a server that is given by its address alone is called by its host."""
    url = wanted.base_url or ""
    return wanted if wanted.provider else replace(wanted, provider=urlsplit(url).netloc or url)


def _asked(files: Written, wanted: Wanted, environ: Mapping[str, str], person: Person | None) -> Wanted:
    if person is None:
        raise UsageError(f"name a provider with --provider: one of {', '.join([*files.providers, *_OFFERED])}")
    ids = list(dict.fromkeys([*files.providers, *_OFFERED]))
    names = [f"{id:12} {_remark(id, environ)}".rstrip() for id in ids]
    chosen = person.choose("Which provider?", [*names, "another server, by its address"])
    if chosen < len(ids):
        return replace(wanted, provider=ids[chosen])
    url = person.text("Its address, such as http://localhost:8080/v1")
    if not url:
        raise UsageError("no address was given: nothing was written")
    name = person.text("The variable that holds its key, such as MY_KEY; empty: it wants none")
    return replace(wanted, base_url=url, api_key_env=name or wanted.api_key_env)


def _remark(id: str, environ: Mapping[str, str]) -> str:
    known = PROVIDERS.get(id)
    if known is None or id == "demo":
        return "offline, no language model" if known else ""
    if known.key is None:
        return "on this machine"
    return f"{known.key} is set" if environ.get(known.key) else ""


def _connection(
    files: Written, id: str, wanted: Wanted, environ: Mapping[str, str], *, is_known: bool = False
) -> Connection:
    """The connection as it would be. A name that nobody knows is that of a new server, unless it must be known."""
    if not is_known and wanted.base_url:
        files = files._replace(providers={id: {"id": id}} | files.providers)
    options = Options(provider=id, base_url=wanted.base_url, api_key_env=wanted.api_key_env)
    unmoved = {name: value for name, value in environ.items() if name not in ("CASS_PROVIDER", "CASS_MODEL")}
    return connect(files, options, unmoved, probe=False)


def _key(connection: Connection, person: Person | None) -> Key:
    name, id = connection.api_key_env, connection.provider
    if person is None:
        raise MissingKey(f"set {name}: it holds the API key of {id}; or give the key first: cass login {id}")
    choices = [f"set {name} yourself, and come again", "type it now, kept in providers.json, which only you can read"]
    if providers.has_ring():
        choices.append("type it now, kept in the system's keyring")
    chosen = person.choose(f"{name} is not set. The key of {id}?", choices)
    if not chosen:
        raise MissingKey(f"export {name}=… in your shell, then: cass setup --provider {id}")
    return Key(clean(person.secret(f"API key of {id}"), "the key") or "", (Place.FILE, Place.KEYRING)[chosen - 1])


def _model(
    connection: Connection, wanted: Wanted, person: Person | None, say: Callable[[str], None], *, is_given: bool
) -> str:
    """A model that the server takes."""
    known = PROVIDERS.get(connection.provider)
    usual = known.model if known else ""
    try:
        found = _listed(connection, is_given=is_given)
    except ProviderError as e:
        if e.http_status not in (404, 405, 501) or not (wanted.model or usual):
            raise
        found = []  # it keeps no list: the model itself is tried
    model = wanted.model
    if model is None and person is not None and found:
        ordered = sorted(found, key=lambda id: id != usual)
        model = ordered[person.choose(f"{connection.provider} lists {len(found)} models. Which one?", ordered)]
    model = model or usual or next(iter(found), "")
    if not model:
        raise ConfigError(f"{connection.provider} has no models: give it one first")
    if model not in found:
        try:
            asyncio.run(providers.tried(connection, model))
        except ProviderError as e:
            near = get_close_matches(model, found, 3, 0.4)
            hint = f"; it lists {', '.join(near)}" if near else ""
            where = f"; {MODEL_LISTS[connection.provider]}" if connection.provider in MODEL_LISTS else ""
            e.message = f"{model} is not listed, and does not answer: {e.message}{hint}{where}"
            raise
        say(f"{model} is not listed, but answers")
    return model


def _listed(connection: Connection, *, is_given: bool = False) -> list[str]:
    """Models of a server that took the key. `is_given`: the key is no file's yet."""
    try:
        return asyncio.run(providers.listed(connection))
    except ProviderError as e:
        if is_given and e.key_refused:
            e.message = f"the key was refused: {e.message.partition('; check the key in')[0]}"
        e.add_note("nothing was written")
        raise


# ---- writing --------------------------------------------------------------------------------------------------------


def _entry(files: Written, id: str, wanted: Wanted, key: Key | None) -> dict[str, Any]:
    """What ``providers.json`` must say of `id` besides what it says already; empty: nothing. None takes a field out."""
    entry: dict[str, Any] = {"id": id}
    if wanted.base_url:
        entry["base_url"] = wanted.base_url
    if wanted.api_key_env:
        entry |= {"api_key": None, "keyring": None, "api_key_env": wanted.api_key_env}
    if key is not None:
        text, ring = (key.text, None) if key.place is Place.FILE else (None, True)
        entry |= {"api_key_env": None, "api_key": text, "keyring": ring}
    is_new = id not in PROVIDERS and id not in files.providers
    return entry if len(entry) > 1 or is_new else {}


def _keep(home: Home, id: str, entry: dict[str, Any], key: Key | None) -> None:
    if key is not None and key.place is Place.KEYRING:
        providers.open_ring().put(id, key.text)
    written.change_entry(home.providers, "providers", entry)


def _shown(entry: Mapping[str, Any]) -> str:
    """An entry for people: of a key only that there is one."""
    words = {"api_key": "a key", "keyring": "its key in the system's keyring"}
    fields = ((name, value) for name, value in entry.items() if name != "id" and value is not None)
    return ", ".join(words.get(name) or f"{name} = {value}" for name, value in fields) or "no key"
