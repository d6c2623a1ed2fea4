"""The clipboard: the image that another program has put there, as a program for that gives it."""

import asyncio
import binascii
import os
import shutil
from collections.abc import Mapping
from typing import NamedTuple

from cass import images
from cass.composer import helper
from cass.errors import CassError

PATIENCE_S = 5.0
"""Whoever owns what was copied may hang."""


class Reader(NamedTuple):
    """A program that writes the image on its standard output."""

    command: tuple[str, ...]
    display: str = ""
    """The variable without which it has nothing to ask."""


READERS = (
    Reader(("wl-paste", "--type", "image/png"), "WAYLAND_DISPLAY"),
    Reader(("xclip", "-selection", "clipboard", "-target", "image/png", "-o"), "DISPLAY"),
    Reader(("pngpaste", "-")),
    Reader(("osascript", "-e", "get the clipboard as \u00abclass PNGf\u00bb")),
)


async def image(environ: Mapping[str, str] = os.environ) -> bytes:
    """The image on the clipboard. Raises CassError where there is none, or nothing to get it with."""
    readers = [one for one in READERS if shutil.which(one.command[0]) and environ.get(one.display or "PATH")]
    if not readers:
        raise CassError("no program here reads an image from the clipboard: wl-paste, xclip, pngpaste or osascript")
    for reader in readers:
        try:
            async with asyncio.timeout(PATIENCE_S):
                content = _plain((await helper.told(reader.command)).out)
        except (OSError, TimeoutError):
            continue
        if images.measure(content) is not None:
            return content
    raise CassError("the clipboard holds no image")


def _plain(written: bytes) -> bytes:
    """The bytes themselves; AppleScript writes them in hexadecimal, as ``\u00abdata PNGf89504E47...\u00bb``."""
    text = written.strip()
    head = "\u00abdata PNGf".encode()
    if not text.startswith(head):
        return written
    try:
        return binascii.unhexlify(text.removeprefix(head).removesuffix("\u00bb".encode()))
    except ValueError:
        return b""
