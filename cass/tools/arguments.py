"""Arguments of a call: checked by hand, so that a model reads what it should have sent.

What is meant is taken where it is clear: ``"5"`` for a number, ``"true"`` for a boolean. What is not known is an error,
because a call that silently ignores half of its arguments does something else than was asked.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from cass import jsonl
from cass.errors import ToolError
from cass.names import unquoted
from cass.pattern import pattern

ITEMS = 1_000
"""Of one list: each path is resolved while everything else waits."""

_INTEGER = pattern(r"[+-]?\d{1,18}")  # `int` refuses thousands of digits with an error of its own


class Given:
    """The arguments that `tool` got; every error names it and the argument."""

    def __init__(self, tool: str, values: Mapping[str, Any], known: tuple[str, ...]) -> None:
        self.tool = tool
        self._values = {name: value for name, value in values.items() if value is not None}
        if unknown := [name for name in self._values if name not in known]:
            raise self.error(f'takes {", ".join(known)}; not "{unknown[0][:40]}"')

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def error(self, text: str) -> ToolError:
        return ToolError(f"{self.tool}: {text}")

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required where there is no default."""
        value = self._values.get(name, default)
        if value is None:
            raise self.error(f'"{name}" is missing; it must be a string')
        if not isinstance(value, str):
            raise self.error(f'"{name}" must be a string, not {_kind(value)}')
        return value

    def path(self, name: str, default: str | None = None) -> str:
        return self.checked_path(self.text(name, default), name)

    def checked_path(self, value: object, name: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.error(f'"{name}" must be a path')
        try:
            os.fsencode(value)
        except UnicodeEncodeError as e:
            raise self.error(f'"{name}" holds half a character at {e.start}') from e
        if "\0" in unquoted(value):
            raise self.error(f'"{name}" must be a path, without a NUL')
        return value

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """An integer, brought between `low` and `high`."""
        value = self._values.get(name, default)
        if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f'"{name}" must be an integer, not {_kind(value)}')
        return max(low, min(high, value))

    def boolean(self, name: str, default: bool = False) -> bool:
        value = self._values.get(name, default)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            value = value.lower() == "true"
        if not isinstance(value, bool):
            raise self.error(f'"{name}" must be true or false, not {_kind(value)}')
        return value

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of some words; the first where none is given."""
        value = self._values.get(name, choices[0])
        if value not in choices:
            raise self.error(f'"{name}" must be one of {", ".join(choices)}, not {_kind(value)}')
        return str(value)

    def items(self, name: str, shape: str) -> list[Any]:
        """A list, required and not empty; a single item, or JSON text of either, is taken too."""
        value = self._values.get(name)
        if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = [value]
        if isinstance(value, (str, dict)):
            value = [value]
        if not isinstance(value, list) or not value:
            raise self.error(f'"{name}" must be {shape}')
        if len(value) > ITEMS:
            raise self.error(f'"{name}" holds {len(value):,} items; at most {ITEMS:,} go into one call')
        return value


def in_order(values: Mapping[str, Any]) -> str:
    """The arguments as rules are compared with them: JSON, the names in order."""
    return jsonl.dump(dict(sorted(values.items()))).decode()


def _kind(value: object) -> str:
    """What JSON calls the value, which is shown where it is a plain one: a list may be nested too deep for that."""
    match value:
        case list():
            return "a list"
        case dict():
            return "an object"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    return f"{names.get(type(value), 'null')} ({str(value)[:40]})"
