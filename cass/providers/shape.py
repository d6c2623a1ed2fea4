"""Shape: what stands in a JSON value of which nothing is certain; whatever is of another type counts as nothing."""

from typing import Any


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def dollars(value: Any) -> float | None:
    """USD that a provider says a request has cost; None where it says nothing of the kind."""
    return float(value) if type(value) in (int, float) and 0 <= value < 1_000_000 else None


def count(*values: Any) -> int:
    """The first that is a count other than 0; else 0."""
    return next((int(value) for value in values if isinstance(value, (int, float)) and 0 < value < 1 << 53), 0)
