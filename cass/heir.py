"""The heir: the chat that goes on from one of Cassady 0.4, which stays as it is.

The older program stops reading at the first line that it does not know, so nothing of ours is written into its files.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cass import catalogue, chat, config, elder, jsonl, prompt
from cass.ends import closing, open_turn
from cass.errors import CassError
from cass.home import Files
from cass.records import (
    Assistant,
    Fact,
    Meta,
    Record,
    System,
    ToolResult,
    TurnEnd,
    User,
    encode,
)


def of(files: Files, tell: Callable[[str], None]) -> Files:
    """The chat to go on with: `files`, or the heir of what Cassady 0.4 wrote, made if need be, which is said."""
    if not elder.wrote(files.chat):
        return files
    there = find(files)
    made = there or make(files)
    tell(f"{files.chat_id} was written by Cassady 0.4 and stays as it is; it goes on as {made.chat_id}")
    return made


def find(files: Files) -> Files | None:
    """The latest chat that goes on from `files`; None where there is none yet."""
    for chat_id in sorted(catalogue.ids(files.home), reverse=True):
        other = files.home.files(chat_id)
        first = chat.first(other)
        if first is not None and first.parent_chat_id == files.chat_id and not first.branch_from:
            return other
    return None


def make(files: Files) -> Files:
    """A new chat that holds what was said in `files`, names it as its parent, and is told what new chats are told.

    Raises CassError where `files` has no workspace, or the disk refuses.
    """
    found = chat.read(files)
    meta = chat.meta(found)
    if meta is None:
        raise CassError(f"{files.chat} holds no meta record: it is no chat")
    instructions = config.instructions(files.home, Path(meta.cwd))
    made = chat.reserve(files.home)
    first = Meta(
        chat_id=made.chat_id,
        created_at=jsonl.now(),
        model=meta.model,
        cwd=meta.cwd,
        parent_chat_id=files.chat_id,
        family=files.chat_id,
        agents_files=instructions.files or None,
    )
    system = System(content=prompt.system(instructions.global_text, instructions.text))
    lines = b"".join(map(encode, [first, system, *_turns(found)]))
    try:
        with open(made.chat, "ab", buffering=0) as file:
            file.write(lines)
    except OSError as e:
        made.chat.unlink(missing_ok=True)
        raise CassError(f"cannot write {made.chat}: {os.strerror(e.errno or 0)}") from e
    return made


def _turns(found: Sequence[Record]) -> Iterator[Fact]:
    """What was said, each turn with its end, which Cassady 0.4 did not write down."""
    turn: list[Fact] = []
    for record in found:
        if isinstance(record, User) and turn:
            yield from _ended(turn)
            turn = []
        if isinstance(record, (User, Assistant, ToolResult)) and (turn or isinstance(record, User)):
            turn.append(record)
    if turn:
        yield from _ended(turn)


def _ended(turn: Sequence[Fact]) -> Iterator[Fact]:
    """The records of a turn and its end."""
    last = turn[-1]
    at = last.created_at if isinstance(last, (User, Assistant, ToolResult)) else ""
    yield from turn
    if isinstance(last, Assistant) and not last.tool_calls:
        answers = open_turn(turn)
        yield TurnEnd(turn=answers[0], answers=answers, outcome="done", created_at=at)
    else:
        yield from closing(turn, "Cassady 0.4 ended before the turn did", at)
