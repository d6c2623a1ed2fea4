"""What answers: provider, model and key as the configuration has them, and whether the endpoint can be reached."""

import asyncio
import time
from collections.abc import Iterator, Mapping

from cass import config, jsonl, providers
from cass.amounts import many
from cass.check.finding import Finding, error, ok, warning
from cass.config import Connection, Options, Settings
from cass.errors import CassError, ProviderError
from cass.home import Home
from cass.known import MODEL_LISTS, is_local
from cass.providers import failures
from cass.rules import vain


def settings(home: Home, environ: Mapping[str, str]) -> Settings | None:
    """What a chat would go by; None where the configuration is wrong."""
    try:
        return config.load(home, Options(), environ)
    except CassError:
        return None


def look(home: Home, environ: Mapping[str, str], *, online: bool) -> Iterator[Finding]:
    try:
        found = config.load(home, Options(), environ)
    except CassError as e:
        yield error("provider", str(e))
        return
    connection = found.connection
    if connection.kind == "demo" and not connection.script:
        text = "demo: offline, no language model answers"
        yield warning("provider", text, "cass setup; or set FIREWORKS_API_KEY, or another provider's key")
    else:
        address = f" at {failures.address(connection.base_url)}" if connection.base_url else ""
        yield ok("provider", f"{connection.provider} ({connection.kind}){address}")
        yield _key(connection)
    yield _model(found)
    yield ok("mode", f"{found.mode}, {_rules(found)}")
    yield from (warning("rules", text) for text in vain(found.rules))
    if online and connection.kind in providers.KINDS:
        yield _reach(connection, found.model)


def _key(connection: Connection) -> Finding:
    name = connection.api_key_env
    if connection.api_key is not None:
        return ok("key", f"found in {name}" if name else "stored in providers.json")
    if connection.keyring:
        return ok("key", "in the system's keyring")
    if name is not None:
        return error(
            "key",
            f"{name} is not set",
            f"export {name}=…, the API key of {connection.provider}; or: cass login {connection.provider}",
        )
    return ok("key", "none is needed" if is_local(connection.base_url) else "none is configured")


def _model(found: Settings) -> Finding:
    text = f"{found.model}, {found.context_limit:,} tokens of context"
    if found.context_assumed:
        id, provider = (jsonl.dump(name).decode() for name in (found.model, found.connection.provider))
        entry = f'{{"id": {id}, "provider": {provider}, "context_length": TOKENS}}'
        advice = f'say how long it is in models.json: {{"models": [{entry}]}}'
        return warning("model", f"{text}, assumed: nothing is known about it", advice)
    return ok("model", text)


def _rules(found: Settings) -> str:
    rules = found.rules
    counts = [f"{len(getattr(rules, key))} {key}" for key in ("allow", "ask", "deny") if getattr(rules, key)]
    return f"rules: {', '.join(counts) or 'none'}"


# ---- online ---------------------------------------------------------------------------------------------------------


def _reach(connection: Connection, model: str) -> Finding:
    """Ask the endpoint for its models; the key is sent and never shown."""
    begun = time.monotonic()
    try:
        listed = asyncio.run(providers.listed(connection))
    except CassError as e:
        return error("online", str(e), _advice(connection, e) if isinstance(e, ProviderError) else "")
    text = (
        f"{failures.address(connection.base_url or '')} answers in {(time.monotonic() - begun) * 1000:.0f} ms; "
        f"it lists {many(len(listed), 'model')}"
    )
    if listed and model not in listed:
        where = f"; see {MODEL_LISTS[connection.provider]}" if connection.provider in MODEL_LISTS else ""
        return warning("online", f"{text}, and not {model}", f"choose one with: cass setup{where}")
    return ok("online", text)


def _advice(connection: Connection, failed: ProviderError) -> str:
    if failed.key_refused:
        return f"check {connection.api_key_env or 'the stored key'}"
    match failed.http_status:
        case 404:
            return "check base_url; some servers list no models, and answer all the same"
        case 0:
            return "is it running, the address right, a proxy needed (HTTPS_PROXY)?"
    return "try again later" if failed.transient else ""
