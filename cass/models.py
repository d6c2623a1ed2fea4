"""Models: what is known about each: its context, output limit, abilities and prices. Read when first asked for.

``data/models.json`` is made by ``docs/models.py``; the person's ``models.json`` stands above it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from cass import gguf
from cass.known import LOCAL_CONTEXT, PROVIDERS, is_local
from cass.pattern import pattern

PER = 1_000_000
"""Prices are for so many tokens."""


class Prices(NamedTuple):
    """USD for a million tokens; None: not known, then what is read from or written to a cache costs as other input."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class Facts(NamedTuple):
    """What is known about a model as one provider has it."""

    context: int | None = None
    """Tokens it takes."""
    output: int | None = None
    """Tokens of its longest answer."""
    tools: bool | None = None
    """Whether it can call tools."""
    reasoning: bool | None = None
    effort: str | None = None
    """How much it reasons where nothing is said."""
    images: bool | None = None
    """Whether it can be shown images."""
    prices: tuple[tuple[int, Prices], ...] = ()
    """By the input tokens from which they hold, ascending; empty: not known."""
    is_elsewhere: bool = False
    """Whether this is known of the model as others have it: this provider may have given it less room."""


def find(provider: str, model: str, base_url: str = "", mine: Iterable[Mapping[str, Any]] = ()) -> Facts:
    """What is known about `model` of `provider`. `mine`: the entries of the person's ``models.json``.

    Prices hold for the provider that they are of alone; what a model can do it can do anywhere but on this machine,
    where a server cuts it down to what there is room for.
    """
    own = (entry for entry in mine if entry["id"] == model and entry.get("provider") in (None, provider))
    facts = _built_in(provider, model, base_url)
    for entry in own:
        facts = _above(facts, entry)
    return facts


def _above(facts: Facts, entry: Mapping[str, Any]) -> Facts:
    """`facts` with what the person says."""
    reasoning = entry.get("reasoning") or {}
    prices = entry.get("prices")
    return facts._replace(
        is_elsewhere=facts.is_elsewhere and "context_length" not in entry,
        context=entry.get("context_length") or facts.context,
        output=entry.get("max_output_tokens") or facts.output,
        tools=entry.get("supports_tools", facts.tools),
        reasoning=reasoning.get("supported", facts.reasoning),
        effort=reasoning.get("default_effort") or facts.effort,
        images=entry.get("supports_images", facts.images),
        prices=((0, Prices(**prices)),) if prices else facts.prices,
    )


# ---- what is built in -----------------------------------------------------------------------------------------------

_FREE = ((0, Prices(0, 0)),)
_DEMO = Facts(context=1_000_000, tools=True, reasoning=False, images=True, prices=_FREE)
_DATA = Path(__file__).parent / "data" / "models.json"
_GATEWAYS = {"openrouter"}
"""They pass on the models of others, called ``vendor/model``."""
_CLOSED = {"anthropic", "openai", "google", "x-ai"}
"""Vendors whose models cost the same through a gateway; those with open weights have many hosts, each with prices."""
_VENDORS = {
    "google": "gemini",
    "mistralai": "mistral",
    "moonshotai": "kimi",
    "qwen": "dashscope",
    "x-ai": "xai",
    "z-ai": "zai",
}
"""Their names of those whom we call otherwise."""
_DATE = pattern(r"[-@](20\d\d-?\d\d-?\d\d|latest)$")
_VARIANT = pattern(r":[a-z]+$")
_BEDROCK = pattern(r"^(?:[a-z]+\.)?anthropic\.|-v\d(?::\d+)?$")


@cache
def _table() -> dict[str, dict[str, list[Any]]]:
    """Rows by provider and id: context, output, ``t`` or ``n`` (tools), ``r`` (reasoning) and ``v`` or ``b`` (images or
    none), then four prices, then the same above a number of input tokens."""
    models: dict[str, dict[str, list[Any]]] = orjson.loads(_DATA.read_bytes())["models"]
    return models


def _built_in(provider: str, model: str, base_url: str) -> Facts:
    if provider == "demo":
        return _DEMO
    if provider == "local":
        return Facts(context=min(gguf.context(model) or LOCAL_CONTEXT, LOCAL_CONTEXT), prices=_FREE)
    if is_local(base_url or _url(provider)):
        return Facts(prices=_FREE)
    table = _table()
    place = provider if provider in table else _whose(base_url)
    if row := _row(table.get(place, {}), model):
        return _facts(row)
    vendor, _, name = model.rpartition("/")
    if provider in _GATEWAYS and (row := _row(table.get(_VENDORS.get(vendor, vendor), {}), name)):
        facts = _facts(row)
        return facts if vendor in _CLOSED and ":" not in name else facts._replace(prices=())
    rows = _anywhere().get(_plain(model), ())
    return _facts(min(rows, key=lambda row: row[0]))._replace(prices=(), is_elsewhere=True) if rows else Facts()


def _url(provider: str) -> str:
    return PROVIDERS[provider].base_url if provider in PROVIDERS else ""


def _whose(base_url: str) -> str:
    """The provider whose address this is."""
    host = urlsplit(base_url).hostname
    return next((id for id, known in PROVIDERS.items() if host and host == urlsplit(known.base_url).hostname), "")


def _row(rows: Mapping[str, list[Any]], model: str) -> list[Any] | None:
    """The row of a model under its name, or under a name of which the provider knows the meaning."""
    bare = _VARIANT.sub("", model.removeprefix("models/"))
    undated = _DATE.sub("", bare)
    names = (model, bare, undated, undated.replace(".", "-"), f"accounts/fireworks/models/{model}")
    return next((rows[name] for name in names if name in rows), None)


@cache
def _anywhere() -> dict[str, list[list[Any]]]:
    """Rows of all providers, by plain name."""
    found: dict[str, list[list[Any]]] = {}
    for rows in _table().values():
        for id, row in rows.items():
            found.setdefault(_plain(id), []).append(row)
    return found


def _plain(model: str) -> str:
    """What is the same in all names of a model: ``Org/Glm-5.3:free`` is what Fireworks calls ``glm-5p3``."""
    name = _BEDROCK.sub("", _VARIANT.sub("", model.casefold().rpartition("/")[2]))
    return re.sub(r"(?<=\d)[p.](?=\d)", "-", _DATE.sub("", name))


def _facts(row: list[Any]) -> Facts:
    context, output, abilities, *prices = row
    tiers = [(0, prices[:4]), *((tier[0], tier[1:]) for tier in prices[4:])]
    return Facts(
        context,
        output,
        tools={"t": True, "n": False}.get(abilities[:1]),
        reasoning="r" in abilities,
        images=True if "v" in abilities else False if "b" in abilities else None,
        prices=tuple((least, Prices(*tier)) for least, tier in tiers if len(tier) > 1 and None not in tier[:2]),
    )
