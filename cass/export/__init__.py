"""Export: a chat as a document, for people or for programs."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from cass import chat, environment, written
from cass.errors import CassError
from cass.export import document, html, plain
from cass.export.redaction import Redaction
from cass.home import Files
from cass.jsonl import load
from cass.records import Fact, Unknown, encode


def _json(records: Sequence[Fact]) -> str:
    """All records as one JSON object; the chat file itself has them line by line."""
    whole = {
        "chat_id": document.meta_of(records).chat_id,
        "title": document.title(records),
        "records": [load(encode(record)) for record in records],
    }
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


FORMATS: dict[str, Callable[[Sequence[Fact]], str]] = {"md": plain.markdown, "html": html.page, "json": _json}
"""What each format makes of the records of a chat."""


def render(files: Files, form: str, *, redact: bool, say: Callable[[str], object]) -> str:
    """A chat in one of `FORMATS`, without its last newline. Tells `say` what was left out. Raises NoChat."""
    found = chat.read(files)
    for damage in chat.damage(found):
        say(damage.text)
    records: list[Fact] = [record for record in found if isinstance(record, Fact) and not isinstance(record, Unknown)]
    if redact:
        redaction = Redaction(_secrets(files))
        records = [redaction.record(record) for record in records]
        say(f"{redaction.hidden} places redacted; read what is left before you give it away")
    return FORMATS[form](records).removesuffix("\n")


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
