"""Variables: which of the environment the tools of a chat are given, and which values they must not put out."""

import os

from cass import config
from cass.config import Settings
from cass.decisions import TOOL_MARK
from cass.environment import for_tools
from cass.home import Files


def given(settings: Settings, files: Files) -> dict[str, str]:
    """The environment for tools."""
    kept = for_tools(
        os.environ,
        keys=config.secret_names(files.home) | {settings.connection.api_key_env},
        in_use=settings.connection.api_key,
        passed=settings.shell_env,
    )
    return kept | {TOOL_MARK: files.chat_id}


def withheld(settings: Settings, files: Files) -> tuple[str, ...]:
    """What no tool may put out: keys of providers, and what the environment holds and tools are not given."""
    told = given(settings, files)
    others = [value for name, value in os.environ.items() if name not in told and not value.startswith("/")]
    return (settings.connection.api_key or "", *others, *config.stored_keys(files.home))
