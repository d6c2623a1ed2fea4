"""Values: what records hold that is more than a text or a number, and what each is in JSON.

`of` takes what a line says, leniently; `said` is what goes into one.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cass.pattern import pattern

_SHA256 = pattern(r"[0-9a-f]{64}")
_LONGEST_NAME = 4096
MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for."""

    id: str
    """As the provider sent it; sent back unchanged to the model that made it, to others as they take it."""
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    arguments_raw: str | None = None
    """The model's own text where it was no JSON object; such a call never runs."""

    @classmethod
    def of(cls, said: Any) -> "ToolCall | None":
        """None for what is no call."""
        if not isinstance(said, dict) or not isinstance(said.get("id"), str) or not isinstance(said.get("name"), str):
            return None
        arguments = said.get("arguments")
        arguments = arguments if isinstance(arguments, dict) else {}
        return cls(said["id"], said["name"], arguments, said.get("arguments_raw"))

    def said(self) -> dict[str, Any]:
        line: dict[str, Any] = {"id": self.id, "name": self.name, "arguments": self.arguments}
        if self.arguments_raw is not None:
            line["arguments_raw"] = self.arguments_raw
        return line


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them."""

    input: int = 0
    """All input tokens, those read from and written to a cache included."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    """The part of `output` that was reasoning."""
    cost: float | None = None
    """USD, as the provider reported it, else by the prices then known; None: not known. A sum is of what is known."""

    @classmethod
    def of(cls, said: dict[str, Any]) -> "Usage":
        """What is no number counts for nothing."""
        return cls(**{name: _count(said.get(name)) for name in _COUNTS}, cost=_amount(said.get("cost")))

    def said(self) -> dict[str, Any]:
        line = {name: getattr(self, name) for name in _COUNTS}
        return line if self.cost is None else {**line, "cost": self.cost}

    def __add__(self, other: "Usage") -> "Usage":
        costs = [usage.cost for usage in (self, other) if usage.cost is not None]
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return Usage(**counts, cost=round(sum(costs), 9) if costs else None)


_COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning")


class Attachment(NamedTuple):
    """An image that goes with a message. Its content is the blob `sha256`."""

    sha256: str
    media_type: str
    """One of `MEDIA_TYPES`."""
    name: str
    """What the person calls it: the path that they gave, or a number where it has none."""
    bytes: int
    """Its size."""
    width: int
    """Pixels."""
    height: int

    @classmethod
    def of(cls, said: Any) -> "Attachment | None":
        """None for what is no attachment. The hash is one: it becomes the name of a file."""
        if not isinstance(said, dict):
            return None
        texts = [said.get(name) for name in ("sha256", "media_type", "name")]
        counts = [said.get(name) for name in ("bytes", "width", "height")]
        if not all(isinstance(text, str) for text in texts) or not all(type(n) is int and n >= 0 for n in counts):
            return None
        is_known = said["media_type"] in MEDIA_TYPES and len(said["name"]) <= _LONGEST_NAME
        if not is_known or not _SHA256.fullmatch(said["sha256"]):
            return None
        return cls(*texts, *counts)  # type: ignore[arg-type]

    def said(self) -> dict[str, Any]:
        return self._asdict()


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _amount(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else None
