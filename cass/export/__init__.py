"""Export: a chat as a document, for people or for programs."""

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from cass import attachments, chat, environment, images, written
from cass.errors import CassError
from cass.export import document, html, plain
from cass.export.redaction import Redaction
from cass.home import Files, Home
from cass.jsonl import load
from cass.records import Fact, Unknown, User, encode


def _json(records: Sequence[Fact]) -> str:
    """All records as one JSON object; the chat file itself has them line by line."""
    whole = {
        "chat_id": document.meta_of(records).chat_id,
        "title": document.title(records),
        "records": [load(encode(record)) for record in records],
    }
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


FORMATS: dict[str, Callable[[Sequence[Fact]], str]] = {"md": plain.markdown, "html": html.page, "json": _json}
"""What each format makes of the records of a chat; a page is also given the images that it is to hold."""


def render(files: Files, form: str, *, redact: bool, say: Callable[[str], object]) -> str:
    """A chat in one of `FORMATS`, without its last newline. Tells `say` what was left out. Raises NoChat."""
    found = chat.read(files)
    for damage in chat.damage(found):
        say(damage.text)
    records: list[Fact] = [record for record in found if isinstance(record, Fact) and not isinstance(record, Unknown)]
    if form == "html" and not redact:
        return html.page(records, _images(files.home, records)).removesuffix("\n")
    if redact:
        redaction = Redaction(_secrets(files))
        records = [redaction.record(record) for record in records]
        say(f"{redaction.hidden} places redacted; read what is left before you give it away")
    return FORMATS[form](records).removesuffix("\n")


def _images(home: Home, records: Sequence[Fact]) -> dict[str, str]:
    """The images of a chat that are kept, as addresses that hold them, by their hashes."""
    found = {}
    for one in {one for record in records if isinstance(record, User) for one in record.attachments}:
        content = attachments.content(home, one)
        image = images.measure(content) if content is not None else None
        if content is not None and image is not None and image.media_type == one.media_type:
            found[one.sha256] = f"data:{image.media_type};base64,{base64.b64encode(content).decode()}"
    return found


def form_of(path: Path | None) -> str:
    """The format that a file's name asks for; ``md`` where it asks for none."""
    ending = path.suffix[1:].lower() if path is not None else ""
    return ending if ending in FORMATS else "md"


def save(text: str, path: Path) -> None:
    """Write a document for its owner alone. Raises CassError."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(f"{text}\n")
    except OSError as e:
        raise CassError(f"{path}: {e.strerror}") from e


def _secrets(files: Files) -> list[str]:
    """The values that are known to be secret: keys in the environment and in the configuration."""
    named = written.secret_names(files.home)
    held = [value for name, value in os.environ.items() if name in named or environment.names_a_secret(name)]
    return held + written.stored_keys(files.home)
