"""The budget: what gives way when a history does not fit the model's context.

Nothing does while it fits. Then, oldest first, each step only as far as it is needed: a read that was made again later
loses its result to that one, long results are shortened, whole turns go. Of the last turn nothing goes, and what the
newest answer asked for stays as it is. How much must go is rounded up, so that most requests leave out what the one
before did, and a provider's cache of prefixes breaks as rarely as can be.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from cass.jsonl import dump
from cass.records import Assistant, Attachment, ToolResult, User

Message = User | Assistant | ToolResult
Turn = list[Message]

BYTES_PER_TOKEN = 4
"""Of English text and code, roughly, for every tokenizer."""
OVERHEAD_TOKENS = 8
"""Of a message beside its text: role, ids, separators."""
PIXELS_PER_TOKEN = 750
"""Of an image. Source: https://platform.claude.com/docs/en/build-with-claude/vision"""
IMAGE_TOKENS = 1_100, 5_000
"""The least and the most that one is taken to cost: others count small ones as tiles, and large ones are scaled down.
Where a provider counts more it says so, and the estimates that follow go by that."""
SHORTENED = 2_000
"""Characters that stay of a long result."""
STEPS = 4
"""What must go is rounded up to so many parts of the room."""
READ_AGAIN = "[left out here: the same read was made again later, and its result stands there]"


class Cut(NamedTuple):
    """What gave way."""

    turns: int = 0
    """Of the first ones, gone as a whole."""
    shortened: int = 0
    """Results with less than they had."""


def tokens(text: str | bytes) -> int:
    """An estimate of the tokens of `text`."""
    size = len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // BYTES_PER_TOKEN)


def weight(message: Message) -> int:
    """An estimate of the tokens of a message, what it asks for or notes included."""
    size = tokens(message.content) + OVERHEAD_TOKENS
    if isinstance(message, User):
        return size + tokens(message.note or "") + sum(map(image_tokens, message.attachments))
    if isinstance(message, Assistant):
        return size + sum(tokens(dump(call.arguments)) + OVERHEAD_TOKENS for call in message.tool_calls)
    return size


def image_tokens(image: Attachment) -> int:
    """An estimate of the tokens of an image, which are none of its bytes."""
    least, most = IMAGE_TOKENS
    return min(max(image.width * image.height // PIXELS_PER_TOKEN, least), most)


def fit(turns: list[Turn], room: int) -> Cut:
    """Make `turns` fit into `room` tokens, in place as far as possible; the first ``Cut.turns`` are to be left out."""
    excess = _rounded(sum(weight(message) for turn in turns for message in turn) - room, room)
    if excess <= 0:
        return Cut()
    shortened = 0
    for turn, number, shorter in [*_read_again(turns), *_long(turns)]:
        saved = weight(turn[number]) - weight(shorter)
        if excess <= 0 or saved <= 0:
            continue
        turn[number] = shorter
        excess -= saved
        shortened += 1
    gone = 0
    while excess > 0 and gone < len(turns) - 1:
        excess -= sum(map(weight, turns[gone]))
        gone += 1
    return Cut(gone, shortened)


def short(message: Message, limit: int, again: str) -> Message:
    """A result of at most `limit` characters: head and tail, and between them what is missing and how to see it."""
    if not isinstance(message, ToolResult) or len(message.content) <= limit:
        return message
    text = message.content
    half = max(0, (limit - len(_note(len(text), again))) // 2)
    tail = text[len(text) - half :]
    return replace(message, content=text[:half] + _note(len(text) - 2 * half, again) + tail)


def _note(missing: int, again: str) -> str:
    return f"\n\n[... {missing} characters left out here. To see them, {again} ...]\n\n"


def _rounded(excess: int, room: int) -> int:
    step = max(1, room // STEPS)
    return -(-excess // step) * step if excess > 0 else 0


def _older(turns: list[Turn]) -> Iterator[tuple[Turn, int, ToolResult]]:
    """Each result that the model has seen when it last answered, oldest first, with its turn and its place there."""
    for turn in turns:
        newest = max((n for n, message in enumerate(turn) if isinstance(message, Assistant)), default=0)
        for number, message in enumerate(turn if turn is not turns[-1] else turn[:newest]):
            if isinstance(message, ToolResult):
                yield turn, number, message


def _long(turns: list[Turn]) -> Iterator[tuple[Turn, int, Message]]:
    """What each long result would be if it were short."""
    for turn, number, result in _older(turns):
        if len(result.content) > SHORTENED:
            yield turn, number, short(result, SHORTENED, f"call {result.name} again")


def _read_again(turns: list[Turn]) -> Iterator[tuple[Turn, int, Message]]:
    """The results of reads that were made again, word for word, and did not fail then."""
    reads = [(call, result) for turn in turns for call, result in _reads(turn)]
    last = {wanted: id(result) for wanted, result in reads if result.ok}
    superseded = {id(result) for wanted, result in reads if last.get(wanted, id(result)) != id(result)}
    for turn, number, result in _older(turns):
        if id(result) in superseded:
            yield turn, number, replace(result, content=READ_AGAIN)


def _reads(turn: Turn) -> Iterator[tuple[bytes, ToolResult]]:
    """The reads of a turn, as their arguments and results. Results stand behind their answer in the order of calls."""
    wanted: list[tuple[str, bytes]] = []
    for message in turn:
        if isinstance(message, Assistant):
            wanted = [(call.name, dump(call.arguments)) for call in message.tool_calls]
        elif isinstance(message, ToolResult) and wanted:
            name, arguments = wanted.pop(0)
            if name == "read":
                yield arguments, message
