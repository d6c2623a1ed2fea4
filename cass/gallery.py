"""The gallery: the images that a request holds, and the words that stand for those it cannot hold.

Pure but for `content`, which the caller reads. While nothing has to go, what a message shows is the same in every
request: a provider's cache of prefixes holds over images, too.
"""

import binascii
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from cass.attachments import ALL
from cass.budget import Message
from cass.records import Attachment, User
from cass.values import MEDIA_TYPES
from cass.visible import safe_line

LARGEST = ALL
"""Bytes of the images of one request: those of one message always fit."""
STEP = 5_000_000
"""What must go is rounded up to it, so that most requests show what the one before did."""

Refused = Callable[[Attachment], str]
"""Why an image cannot be sent; "" where it can."""
_TAKEN_BY_KIND: dict[str, tuple[frozenset[str], int]] = {
    # https://platform.claude.com/docs/en/build-with-claude/vision: 5 MB, of the base64
    "anthropic": (MEDIA_TYPES, (5 << 20) // 4 * 3),
    # https://ai.google.dev/gemini-api/docs/image-understanding: no GIF
    "gemini": (MEDIA_TYPES - {"image/gif"}, LARGEST),
}


class Unseen(NamedTuple):
    """An image that the model does not see."""

    of: str
    """Id of its message."""
    words: str
    """What stands in its place."""


class Hung(NamedTuple):
    messages: tuple[Message, ...]
    """Each of their attachments is in `images`."""
    images: dict[str, str]
    """Base64 of each, by its hash."""
    unseen: tuple[Unseen, ...]


def refusal(kind: str, takes_images: bool | None, attachment: Attachment) -> str:
    """Why a model, reached through an API of this kind, is not shown an image; "" where it may be."""
    if takes_images is False:
        return "not sent, this model takes no images"
    types, largest = _TAKEN_BY_KIND.get(kind, (None, LARGEST))
    if types is not None and attachment.media_type not in types:
        return f"not sent, this API takes no {attachment.media_type.removeprefix('image/').upper()}"
    return "" if attachment.bytes <= largest else f"not sent, this API takes {largest / 1e6:.1f} MB"


def told(message: Message, refused: Refused) -> tuple[Message, list[Unseen]]:
    """A message with words in place of the images that cannot be sent."""
    if not isinstance(message, User) or not message.attachments:
        return message, []
    reasons = [(one, refused(one)) for one in message.attachments]
    words = [f"[{_named(one)}: {reason}]" for one, reason in reasons if reason]
    if not words:
        return message, []
    content = "\n\n".join(filter(None, (message.content, *words)))
    left = tuple(one for one, reason in reasons if not reason)
    return replace(message, content=content, attachments=left), [Unseen(message.id, text) for text in words]


def _named(attachment: Attachment) -> str:
    return f"image {safe_line(attachment.name)}, {attachment.width}x{attachment.height}"


def hang(messages: Sequence[Message], content: Callable[[Attachment], bytes | None]) -> Hung:
    """The messages with their images, of which the oldest give way where there are too many bytes of them."""
    if not any(isinstance(message, User) and message.attachments for message in messages):
        return Hung(tuple(messages), {}, ())
    shown: dict[str, str] = {}
    unseen: list[Unseen] = []
    made: list[Message] = []
    crowded = _crowded(messages)
    for message in messages:
        gone = frozenset() if not isinstance(message, User) else crowded.get(message.id, frozenset())

        def refused(one: Attachment, gone: frozenset[str] = gone) -> str:
            if one.sha256 in gone:
                return "left out, later images take its room"
            if one.sha256 not in shown:
                if (found := content(one)) is None:
                    return "no longer kept"
                shown[one.sha256] = binascii.b2a_base64(found, newline=False).decode()
            return ""

        message, words = told(message, refused)
        made.append(message)
        unseen += words
    return Hung(tuple(made), shown, tuple(unseen))


def _crowded(messages: Sequence[Message]) -> dict[str, frozenset[str]]:
    """The images that must go, by message: the oldest, never those of the last message that has some."""
    holders = [message for message in messages if isinstance(message, User) and message.attachments]
    excess = sum(one.bytes for message in holders for one in message.attachments) - LARGEST
    excess = -(-excess // STEP) * STEP
    gone: dict[str, set[str]] = {}
    for message in holders[:-1]:
        for one in message.attachments:
            if excess > 0:
                gone.setdefault(message.id, set()).add(one.sha256)
                excess -= one.bytes
    return {id: frozenset(hashes) for id, hashes in gone.items()}
