"""Welcome: the three ways to begin, for a person who has configured nothing. Pure but for a look at the home."""

from collections.abc import Mapping

from cass import catalogue
from cass.amounts import columns
from cass.config import Options, Settings
from cass.home import Home
from cass.known import PROVIDERS, is_local


def welcome(home: Home, settings: Settings, options: Options, environ: Mapping[str, str]) -> str:
    """What a first start says above its prompt; "" where something is configured or named, or chats work without that.

    To be asked before the chat of this start is made.
    """
    if any((options.provider, options.base_url, environ.get("CASS_PROVIDER"))):
        return ""
    if home.config.exists() or home.providers.exists():
        return ""
    now = settings.connection
    if now.kind != "demo" and catalogue.ids(home):
        return ""
    keys = [known for known in PROVIDERS.values() if known.key and environ.get(known.key)]
    found = [(f"{known.key} is set", f"/login {known.id}") for known in keys]
    if is_local(now.base_url):
        found.append((f"{now.provider} answers on this machine", f"/login {now.provider}"))
    elif not keys:
        found.append(("no key is set in this environment", "/login asks for one"))
        found.append(("no model server answers on this machine", "start ollama, then /login ollama"))
    is_demo = now.kind == "demo"
    found.append((f"the demo{' answers' if is_demo else ''}: no language model", f"/login demo{is_demo * ' keeps it'}"))
    used = "" if is_demo else f" This chat goes on with {now.provider}: {settings.model}."
    return f"\nWelcome to Cassady. Choose once what answers:\n\n{columns(found)}\n/login lists all providers.{used}\n\n"
