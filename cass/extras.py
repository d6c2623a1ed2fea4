"""Extras: the packages that only some of cass needs, and how to add one to the installation that lacks it."""

import shlex
import sys
from pathlib import Path

PACKAGES = {
    "acp": "agent-client-protocol>=0.12",
    "dask": "distributed>=2024.4",
    "keyring": "keyring>=25",
    "local": "xllamacpp>=2026.1",
    "mcp": "mcp>=2.0",
    "schema": "jsonschema>=4.18",
    "socks": "httpx[socks]>=0.27",
}
"""By the names that ``pyproject.toml`` gives them: a checkout that only runs does not know its own."""


def adding(extra: str, home: str = sys.prefix) -> str:
    """The command for a shell that adds what `extra` needs to the environment `home`, where cass runs.

    pipx and uv leave a file of theirs in an environment that they made, and no pip.
    """
    package, environment = shlex.quote(PACKAGES[extra]), Path(home)
    if (environment / "pipx_metadata.json").exists():
        return f"pipx inject {shlex.quote(environment.name)} {package}"
    python = shlex.quote(str(environment / "bin" / "python"))
    if (environment / "uv-receipt.toml").exists():
        return f"uv pip install --python {python} {package}"
    return f"{python} -m pip install {package}"
