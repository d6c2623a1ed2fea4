"""Roster: the models that an API lists, as requests and the meaning of their answers. Pure."""

from typing import Any

from cass import jsonl
from cass.config import Connection
from cass.errors import ProviderError
from cass.providers import address, anthropic

Asked = tuple[str, dict[str, str]]
"""Address and headers of a GET."""

_PROOFS = {"openrouter": "/key"}
"""What a provider shows to the owner of a key only, where it lists its models to anybody."""


def proof(connection: Connection) -> Asked | None:
    """What to ask besides, so that a wrong key is refused; None: the list itself is enough."""
    path = _PROOFS.get(connection.provider)
    return (address.join(connection.base_url, path, version="/v1"), _headers(connection)) if path else None


def ask(connection: Connection) -> Asked:
    """What to ask for the list."""
    headers = _headers(connection)
    match connection.kind:
        case "anthropic":
            url = address.join(connection.base_url, "/models?limit=1000", version="/v1", always=True)
            return url, {**headers, "anthropic-version": anthropic.VERSION}
        case "gemini":
            return address.join(connection.base_url, "/models?pageSize=1000", version="/v1beta", always=True), headers
    return address.join(connection.base_url, "/models", version="/v1"), headers


def _headers(connection: Connection) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if connection.api_key:
        match connection.kind:
            case "anthropic":
                headers["x-api-key"] = connection.api_key
            case "gemini":
                headers["x-goog-api-key"] = connection.api_key
            case _:
                headers["Authorization"] = f"Bearer {connection.api_key}"
    return headers


def models(body: bytes) -> list[str]:
    """Ids in the order of the answer: ``{"data": [{"id"}]}``, ``{"models": [{"name"}]}``, or the list alone.

    Raises ProviderError where it is none of these.
    """
    try:
        said = jsonl.load(body)
    except ValueError:
        said = None
    found = said.get("data", said.get("models")) if isinstance(said, dict) else said
    if not isinstance(found, list):
        raise ProviderError("the server answers, but with no list of models: is this the address of an API?")
    return [id for id in map(_id, found) if id]


def _id(model: Any) -> str:
    if not isinstance(model, dict):
        return ""
    methods = model.get("supportedGenerationMethods")
    if isinstance(methods, list) and "generateContent" not in methods:
        return ""
    id = model.get("id") or model.get("name")
    return id.removeprefix("models/") if isinstance(id, str) else ""
