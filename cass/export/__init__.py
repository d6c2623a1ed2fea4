"""Export: a chat as a document, for people or for programs."""

import os
import sys
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


def write(files: Files, form: str | None, output: Path | None, *, redact: bool, say: Callable[[str], object]) -> None:
    """Write a chat to `output`, or to standard output. Tells `say` what was left out. Raises NoChat, CassError."""
    found = chat.read(files)
    for damage in chat.damage(found):
        say(damage.text)
    records: list[Fact] = [record for record in found if isinstance(record, Fact) and not isinstance(record, Unknown)]
    if redact:
        redaction = Redaction(_secrets(files))
        records = [redaction.record(record) for record in records]
        say(f"{redaction.hidden} places redacted; read what is left before you give it away")
    ending = output.suffix[1:].lower() if output is not None else ""
    text = FORMATS[form or {"markdown": "md", "htm": "html"}.get(ending, ending if ending in FORMATS else "md")](
        records
    )
    if output is None:
        sys.stdout.write(text)
        return
    try:
        with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
    except OSError as e:
        raise CassError(f"{output}: {e.strerror}") from e


def _secrets(files: Files) -> list[str]:
    """The values that are known to be secret: keys in the environment and in the configuration."""
    named = written.secret_names(files.home)
    held = [value for name, value in os.environ.items() if name in named or environment.names_a_secret(name)]
    return held + written.stored_keys(files.home)
