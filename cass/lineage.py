"""The lineage: which chat began which. What a file claims of its parent makes no circle and hides nothing."""

from collections.abc import Mapping

from cass.visible import safe_line

Parents = Mapping[str, str | None]
"""The chat that began each, by id, in the order of a list; None for one that nothing began."""


def forest(parents: Parents) -> list[tuple[int, str]]:
    """Level and id of each chat, each once, a parent in front of its children, siblings in the order of `parents`.

    Level 0 has those whose parent is not among them; last come circles, each from the first of its chats.
    """
    below: dict[str | None, list[str]] = {}
    for chat_id, parent in parents.items():
        below.setdefault(parent, []).append(chat_id)
    rows: dict[str, int] = {}
    roots = [chat_id for chat_id, parent in parents.items() if parent not in parents]
    waiting = [(0, chat_id) for chat_id in reversed([*roots, *parents])]
    while waiting:
        level, chat_id = waiting.pop()
        if chat_id not in rows:
            rows[chat_id] = level
            waiting += [(level + 1, child) for child in reversed(below.get(chat_id, ()))]
    return [(level, chat_id) for chat_id, level in rows.items()]


def families(parents: Parents) -> dict[str, list[str]]:
    """The ids of each tree of the `forest`, by its root, the root first."""
    found: list[list[str]] = []
    for level, chat_id in forest(parents):
        if not level:
            found.append([])
        found[-1].append(chat_id)
    return {family[0]: family for family in found}


def short(chat_id: str) -> str:
    """``a8f3``: what people call a chat."""
    return safe_line(chat_id.rpartition("-")[2])[:20]


def of_agent(chat_id: str) -> str:
    """The agent that asks something, behind the name of its tool; "" where none does."""
    return f" of the agent {short(chat_id)}" if chat_id else ""


def agent_of(parent: str | None) -> str:
    """``agent of a8f3``; "" for a chat that no other one began."""
    return f"agent of {short(parent)}" if parent else ""
