"""Utterance: what a user says, in the pieces that every API has: a text, and images with what tells them apart."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cass.records import User
from cass.visible import safe_line


class Shown(NamedTuple):
    """An image of a message."""

    caption: str
    """Stands before it where a message has several; "" where it is alone."""
    media_type: str
    data: str
    """Base64."""

    @property
    def uri(self) -> str:
        return f"data:{self.media_type};base64,{self.data}"


def text(user: User) -> str:
    """What was said, behind what changed before it."""
    return "\n\n".join(filter(None, (user.note, user.content)))


def images(user: User, data: Mapping[str, str]) -> Iterator[Shown]:
    """The images of a message, in its order. `data`: base64 of each by its hash."""
    is_alone = len(user.attachments) == 1
    for one in user.attachments:
        yield Shown("" if is_alone else f"[image {safe_line(one.name)}]", one.media_type, data[one.sha256])
