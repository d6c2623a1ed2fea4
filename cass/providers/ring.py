"""Ring: API keys in the keyring of the system, for whoever has installed the extra ``cassady[keyring]``."""

import keyring
from keyring.errors import KeyringError

from cass.errors import ConfigError

_SERVICE = "cass"


def get(provider: str) -> str:
    """The key of a provider. Raises ConfigError where there is none."""
    try:
        key: str | None = keyring.get_password(_SERVICE, provider)
    except KeyringError as e:
        raise ConfigError(f"the system's keyring does not open: {e}") from e
    if not key:
        raise ConfigError(f"the system's keyring holds no key of {provider}; store it with: cass login {provider}")
    return key


def put(provider: str, key: str) -> None:
    """Store a key. Raises ConfigError."""
    try:
        keyring.set_password(_SERVICE, provider, key)
    except KeyringError as e:
        raise ConfigError(f"the system's keyring takes no key: {e}") from e


def remove(provider: str) -> None:
    """Remove a key, if there is one. Raises ConfigError."""
    try:
        if keyring.get_password(_SERVICE, provider) is not None:
            keyring.delete_password(_SERVICE, provider)
    except KeyringError as e:
        raise ConfigError(f"the system's keyring does not give the key up: {e}") from e
