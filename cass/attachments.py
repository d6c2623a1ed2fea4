"""Attachments: the images that go with a message, taken from files of the person's, kept as blobs, checked.

Only the person's own programs take one, from a path that the person gave them: nothing in the text of a message, nor
what a model says, attaches a file.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cass import amounts, blobs, images
from cass.errors import CassError, UsageError
from cass.home import Home
from cass.names import quoted
from cass.values import Attachment
from cass.visible import safe_line

LARGEST = 5_000_000
"""Bytes of one image."""
MOST = 20
"""Images of one message."""
ALL = 20_000_000
"""Bytes of them together: providers take requests of 20 to 32 MB, and base64 makes three bytes four."""
_HASHED = 8
"""Digits of a hash that an image is called by where it has no name."""
WORD = rf"\[image (?P<hash>[0-9a-f]{{{_HASHED}}})\]"
"""The pattern of a `word`."""
SIDE = 8_000
"""Pixels. Source: https://platform.claude.com/docs/en/build-with-claude/vision"""


def every(home: Home, paths: Sequence[str | os.PathLike[str]]) -> tuple[Attachment, ...]:
    """The images in these files, kept. Raises UsageError, and then none is; CassError where the disk refuses."""
    contents = [(_read(path), quoted(os.fspath(path))) for path in paths[: MOST + 1]]
    found = together([_described(content, name) for content, name in contents])
    return tuple(_keep(home, one, content) for one, (content, _) in zip(found, contents, strict=True))


def together(found: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """All of `found`. Raises UsageError where they are more than go with one message."""
    if len(found) > MOST:
        raise UsageError(f"more than {MOST} images: so many go with one message at most")
    if (size := sum(one.bytes for one in found)) > ALL:
        raise UsageError(f"images of {amounts.size(size)}: {amounts.size(ALL)} are the most that go with one message")
    return tuple(found)


def keep(home: Home, content: bytes, what: str) -> Attachment:
    """An image that no file holds, kept, and called by its hash; `what` it is, for an error. Raises UsageError."""
    if len(content) > LARGEST:
        raise UsageError(f"{what} has {amounts.size(len(content))}: {amounts.size(LARGEST)} are the most for an image")
    found = _described(content, what)
    return _keep(home, found._replace(name=found.sha256[:_HASHED]), content)


def _read(path: str | os.PathLike[str]) -> bytes:
    """A file that is no larger than an image may be, as it was at one moment."""
    name = safe_line(os.fspath(path))
    try:
        before = os.stat(path)
        content = blobs.read(path, LARGEST + 1)
        after = os.stat(path)
    except (OSError, ValueError) as e:  # ValueError: a name with a NUL in it
        raise UsageError(f"{name} cannot be attached: {getattr(e, 'strerror', None) or e}") from e
    if len(content) > LARGEST:
        size = amounts.size(max(after.st_size, LARGEST))
        raise UsageError(f"{name} has {size}: {amounts.size(LARGEST)} are the most for an image")
    if (before.st_ino, before.st_mtime_ns, before.st_size) != (after.st_ino, after.st_mtime_ns, len(content)):
        raise UsageError(f"{name} changed while it was read; send it again when it is whole")
    return content


def _described(content: bytes, name: str) -> Attachment:
    """What is said of an image in a record. Raises UsageError for what is none, or none that anybody takes."""
    image = images.measure(content)
    if image is None:
        raise UsageError(f"{safe_line(name)} is no image: PNG, JPEG, GIF and WebP can be attached")
    if not (0 < image.width <= SIDE and 0 < image.height <= SIDE):
        size = f"{image.width}x{image.height}"
        raise UsageError(f"{safe_line(name)} says that it has {size} pixels: {SIDE} a side are the most")
    sha256 = hashlib.sha256(content).hexdigest()
    return Attachment(sha256, image.media_type, name, len(content), image.width, image.height)


def _keep(home: Home, attachment: Attachment, content: bytes) -> Attachment:
    try:
        with blobs.shared(home):
            blobs.store(home, attachment.sha256, content)
    except OSError as e:
        raise CassError(f"{attachment.name} was not kept: {home.blobs}: {os.strerror(e.errno or 0)}") from e
    return attachment


# ---- in the text of a message ----------------------------------------------------------------------------------------


def word(attachment: Attachment) -> str:
    """What names an image, in a draft, that no file holds."""
    return f"[image {attachment.sha256[:_HASHED]}]"


def spelled(text: str, found: Iterable[Attachment], is_there: Callable[[Attachment], bool] = lambda _: True) -> str:
    """A message that becomes a draft again: each of its images is named, by its hash where its file `is_there` not."""
    for one in found:
        mention = next((mention for mention in (f"@{one.name}", f'@"{one.name}"') if mention in text), "")
        if mention and not is_there(one):
            text = text.replace(mention, word(one))
        elif not mention and word(one) not in text:
            text = f"{text} {word(one)}"
    return text


# ---- for the worker -------------------------------------------------------------------------------------------------


def checked(home: Home, said: Any) -> tuple[tuple[Attachment, ...], list[str]]:
    """The attachments of an item of the inbox that are as they say; and what is wrong with the others."""
    entries = said if isinstance(said, list) else []
    wrong = [] if said is None or isinstance(said, list) else ["the attachments of a message are no list"]
    if len(entries) > MOST:
        wrong.append(f"a message came with {len(entries)} attachments: {MOST} are taken")
    found = []
    for entry in entries[:MOST]:
        attachment = Attachment.of(entry)
        fault = _fault(home, attachment) if attachment else "no attachment of ours"
        if attachment and not fault:
            found.append(attachment)
        else:
            name = safe_line(attachment.name)[:200] if attachment else "an attachment"
            wrong.append(f"{name} does not go with its message: {fault}")
    return tuple(found), wrong


def _fault(home: Home, attachment: Attachment) -> str | None:
    """What is wrong with an attachment, if anything is: its blob says what it is."""
    content = blobs.content(home, attachment.sha256)
    if content is None:
        return "its content is not kept"
    try:
        is_so = len(content) <= LARGEST and _described(content, attachment.name) == attachment
    except UsageError:
        is_so = False
    return None if is_so else "it is not what it says it is"


def content(home: Home, attachment: Attachment) -> bytes | None:
    """The bytes of an image; None where they are not kept any more."""
    return blobs.content(home, attachment.sha256)
