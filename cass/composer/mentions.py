"""Mentions: the images that the text of a draft names.

    @picture.png  @"my picture.png"    a file, as it is when the message is sent
    [image 3f2a9c1b]                   one that no file holds, by the beginning of its hash

What stands in a folded paste names none: nobody has seen it.
"""

import hashlib
import os
import shlex
from typing import Any
from urllib.parse import unquote, urlsplit

from cass import attachments, blobs, images
from cass.composer import clipboard
from cass.errors import UsageError
from cass.home import Home
from cass.names import quoted, unquoted
from cass.pattern import pattern
from cass.values import Attachment

_ENDING = r"\.(?i:png|jpe?g|gif|webp)"
_NAMED = pattern(
    rf"""(?<!\S)@(?:"(?P<quoted>[^"\n]+{_ENDING})"|(?P<plain>[^\s"]\S*?{_ENDING})(?=[.,;:!?)\]}}'"]*(?:\s|$)))"""
    rf"|{attachments.WORD}"
)
_HEAD = 1 << 18
"""Bytes of a file that tell whether it is an image: in front of its size a camera may have put a small one."""
_LONGEST = 16_384
"""Characters of a paste that may be paths."""


def found(text: str, home: Home, cwd: str) -> tuple[Attachment, ...]:
    """The images that go with `text`, kept. Raises UsageError for one that cannot be sent."""
    named = {match[0]: match for match in _NAMED.finditer(text)}
    paths = {word: path for word, match in named.items() if (path := match["quoted"] or match["plain"])}
    try:
        taken = attachments.every(home, [os.path.join(cwd, os.path.expanduser(path)) for path in paths.values()])
    except UsageError as e:
        raise UsageError(f"{e}; without the @ it is only named") from e
    files = {word: one._replace(name=quoted(paths[word])) for word, one in zip(paths, taken, strict=True)}
    return attachments.together(
        [files[word] if word in files else _hashed(home, match["hash"]) for word, match in named.items()]
    )


async def from_clipboard(home: Home) -> str:
    """The word for the image on the clipboard, which is kept. Raises CassError."""
    return attachments.word(attachments.keep(home, await clipboard.image(), "the image on the clipboard"))


def _hashed(home: Home, beginning: str) -> Attachment:
    for path in home.blobs.glob(f"{beginning}*"):
        if (content := blobs.content(home, path.name)) is not None:
            return attachments.keep(home, content, f"[image {beginning}]")
    raise UsageError(f"[image {beginning}] is not kept any more: attach it again, or delete it here")


def spelled(item: dict[str, Any], home: Home, cwd: str) -> str:
    """The text of a message that comes back into a draft, where it names its images as they were sent."""
    found, _ = attachments.checked(home, item.get("attachments"))
    return attachments.spelled(str(item["content"]), found, lambda one: _is_there(one, cwd))


def _is_there(one: Attachment, cwd: str) -> bool:
    """Whether its file still holds it."""
    try:
        content = blobs.read(os.path.join(cwd, os.path.expanduser(unquoted(one.name))), one.bytes + 1)
    except (OSError, ValueError):  # ValueError: a name with a NUL in it
        return False
    return hashlib.sha256(content).hexdigest() == one.sha256


def pasted(text: str, cwd: str) -> str | None:
    """Names of the image files that a paste is the paths of, as terminals write them; None where it is other text."""
    if len(text) > _LONGEST or "\n" in text.strip():
        return None
    for words in ([text.strip()], _shell_words(text)):
        paths = [_path(each) for each in words]
        if paths and all(path and '"' not in path and _is_image(os.path.join(cwd, path)) for path in paths):
            names = [path.removeprefix(f"{cwd}/") for path in paths]
            return " ".join(f'@"{name}"' if len(name.split()) > 1 else f"@{name}" for name in names)
    return None


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _path(text: str) -> str:
    if text.startswith("file://"):
        parts = urlsplit(text)
        return unquote(parts.path) if parts.netloc in ("", "localhost") else ""
    return os.path.expanduser(text)


def _is_image(path: str) -> bool:
    if not _NAMED.fullmatch(f'@"{path}"'):
        return False
    try:
        return images.measure(blobs.read(path, _HEAD)) is not None
    except (OSError, ValueError):
        return False
