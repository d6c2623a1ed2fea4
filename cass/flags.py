"""The flags of a run: what its options say, as a worker is given it."""

from collections.abc import Mapping
from typing import Any

NAMES = (
    *("provider", "model", "base_url", "api_key_env", "mode", "sandbox", "net", "effort"),
    *("max_tokens", "max_turns", "max_cost", "max_tool_output", "tools", "config", "layout"),
)
"""Of the options that a worker takes, and of `layout`."""


def flags(given: Mapping[str, Any]) -> list[str]:
    """The arguments that say what is `given`: options by name; None: nothing."""
    found = []
    for name in (*NAMES, "cwd"):
        value = given.get(name)
        if isinstance(value, bool):
            found.append(f"--{name}" if value else f"--no-{name}")
        elif name == "tools" and value is not None:
            found += ["--tools", ",".join(value)]
        elif value is not None and name not in ("mode", "layout"):
            found += [f"--{name.replace('_', '-')}", str(value)]
    if mode := given.get("mode"):
        found.append({"read-only": "--readonly"}.get(mode, f"--{mode}"))
    return found
