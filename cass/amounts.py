"""Amounts: numbers of tokens, of bytes and of money, as people read them, and columns of text."""

from collections.abc import Sequence


def tokens(count: int) -> str:
    """``950``, ``25.6k``, ``1.2M``."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + unit
    return str(count)


def many(number: int, noun: str) -> str:
    """``1 line``, ``1,200 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def money(usd: float | None) -> str:
    """``$12.30``, ``$0.0123``, ``under $0.0001``, ``$0``; ``?`` for what is not known."""
    if usd is None:
        return "?"
    if 0 < usd < 0.0001:
        return "under $0.0001"
    return f"${usd:.2f}" if usd >= 1 else f"${usd:.4f}" if usd else "$0"


def size(count: int) -> str:
    """``1.2 MB``: bytes."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count} B"


def columns(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns of plain text, two spaces before and between."""
    width = max(len(left) for left, _ in rows)
    return "".join(f"  {left:<{width}}  {right}".rstrip() + "\n" for left, right in rows)
