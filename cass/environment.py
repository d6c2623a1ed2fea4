"""Environment: which of the person's variables the tools are given."""

import fnmatch
import re
from collections.abc import Collection, Mapping

from cass.pattern import pattern

_SECRET = pattern(
    r"(?:^|_)(?:API_?KEYS?|KEYS?|TOKENS?|PAT|SECRETS?|PASSWORDS?|PASSWD|PASS|PASSPHRASE|PWD|CREDENTIALS?|AUTH|DSN)(?:_|$)"
    r"|(?:APIKEY|TOKEN|SECRET|PASSWORD|PASSWD)$",
    re.IGNORECASE,
)
KEY_CHARS = 16
"""A shorter key stands for none (``EMPTY``, ``ollama``) and may well be part of an ordinary value."""
_ORDINARY = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
_CREDENTIALS = pattern(r"://[^/\s:@]*:[^/\s@]+@")
"""An address with a password in it, as in ``DATABASE_URL``."""


def for_tools(
    environ: Mapping[str, str], *, keys: Collection[str | None], in_use: str | None, passed: Collection[str]
) -> dict[str, str]:
    """The variables that tools get: without keys of providers, and without what looks like a secret.

    `keys`: names of variables that hold API keys. `in_use`: the key in use, given under no name. `passed`:
    ``shell_env`` of ``config.json``, where ``NAME`` gives that variable whatever it holds, ``NAM*`` those that match
    and hold no API key, ``NAME=value`` sets one.
    """
    names = [entry for entry in passed if "=" not in entry]

    def is_given(name: str, value: str) -> bool:
        if name in names:
            return True
        if name in keys or (in_use and (value == in_use or (len(in_use) >= KEY_CHARS and in_use in value))):
            return False
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in names):
            return True
        return name in _ORDINARY or not (names_a_secret(name) or _CREDENTIALS.search(value))

    set_here = dict(entry.split("=", 1) for entry in passed if "=" in entry)
    return {name: value for name, value in environ.items() if is_given(name, value)} | set_here


def names_a_secret(name: str) -> bool:
    """Whether a variable of this name would hold a secret."""
    return name not in _ORDINARY and _SECRET.search(name) is not None


def is_entry(text: str) -> bool:
    """Whether `text` is a name, a pattern of names, or ``NAME=value``."""
    return re.fullmatch(r"[A-Za-z_*?][A-Za-z0-9_*?]*|[A-Za-z_][A-Za-z0-9_]*=[^\0]*", text) is not None
