"""The tool edit: exact replacements in one file, all of them or none.

Everything happens on bytes, so that what is not spoken of stays as it is: other encodings, line ends, a byte order
mark. A line break in an old text matches the file's own, and the new text then gets the same.
"""

import codecs
import difflib
import itertools
import os
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any

from cass.access import Action
from cass.errors import ToolError
from cass.tools.arguments import Given
from cass.tools.diff import unified
from cass.tools.paths import Place, open_file, reach, read_all, shown
from cass.tools.tool import Arguments, Outcome, Tool
from cass.tools.write import digest, replace

SIZE_LIMIT = 512 << 20
"""The file is held in memory about three times."""
NEAR_LINES = 5_000
"""Lines that are compared to a text that was not found: about 0.2 s of difflib."""
PLACES_SHOWN = 5

_SHAPE = 'a list of {"old_text","new_text","replace_all"?}'
_ALIASES = {"old_string": "old_text", "new_string": "new_text"}


@dataclass(frozen=True, slots=True)
class Edit:
    old: bytes
    new: bytes
    all: bool


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes `start` to `end` of the file become `new`; `number` is the edit's, from 1."""

    start: int
    end: int
    new: bytes
    number: int


def action(arguments: Arguments, place: Place) -> Action:
    return Action("edit", (reach(_parse(arguments)[0], place, write=True),))


def _parse(arguments: Arguments) -> tuple[str, list[Edit]]:
    arguments = {_ALIASES.get(name, name): value for name, value in arguments.items()}
    given = Given("edit", arguments, ("path", "edits", "old_text", "new_text", "replace_all"))
    if "edits" in given:
        items = given.items("edits", _SHAPE)
    elif "old_text" in given:
        items = [{name: arguments.get(name) for name in ("old_text", "new_text", "replace_all")}]
    else:
        raise given.error(f'"edits" must be {_SHAPE}')
    return given.path("path"), [_edit(item, number, given) for number, item in enumerate(items, 1)]


def _edit(item: Any, number: int, given: Given) -> Edit:
    if not isinstance(item, dict):
        raise given.error(f'"edits" must be {_SHAPE}')
    item = {_ALIASES.get(name, name): value for name, value in item.items()}
    one = Given(f"edit {number}", item, ("old_text", "new_text", "replace_all"))
    try:
        old, new = one.text("old_text").encode(), one.text("new_text").encode()
    except UnicodeEncodeError as e:
        raise one.error("the text holds half a character") from e
    if not old:
        raise one.error("old_text is empty; give the text to replace, or use write for the whole file")
    if old == new:
        raise one.error("old_text and new_text are the same; nothing would change")
    return Edit(old, new, one.boolean("replace_all"))


async def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
    path, edits = _parse(arguments)
    path = reach(path, place, write=True).path
    fd = open_file(path, place)
    try:
        status = os.fstat(fd)
        if status.st_size > SIZE_LIMIT:
            raise ToolError(f"{shown(path, place)} is too large to edit ({status.st_size:,} bytes)")
        raw = read_all(fd, status.st_size)
    finally:
        os.close(fd)
    codec = _codec(raw, shown(path, place))
    data = raw if codec is None else raw.decode(codec).encode()
    changes = find(data, edits, shown(path, place))
    changed = apply(data, changes)
    new = changed if codec is None else changed.decode().encode(codec)
    note = replace(path, new, place, expected=status)
    stale = path in place.seen and place.seen[path] != digest(raw)
    if stale:
        note += "; it had also changed otherwise since it was read in this chat"
    # What the model has not seen stays unseen: a later write must not go over it.
    known = path in place.seen and not stale
    summary = _summary(path, edits, changes, place) + note
    yield Outcome(summary, seen={path: digest(new)} if known else {}, diff=unified(data, changed))


def _summary(path: str, edits: list[Edit], changes: list[Change], place: Place) -> str:
    applied = f"{len(edits)} edit{'s' if len(edits) > 1 else ''}"
    if len(changes) > len(edits):
        applied += f" in {len(changes)} places"
    return f"Applied {applied} to {shown(path, place)}"


def _codec(raw: bytes, name: str) -> str | None:
    """The codec to edit through, for UTF-16 with its mark; None for everything else, which is edited as it is."""
    codec = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(raw[:2])
    if codec:
        try:
            raw.decode(codec)
        except UnicodeDecodeError as e:
            raise ToolError(f"{name} begins like UTF-16 but is not; it cannot be edited") from e
    return codec


# ---- finding and applying -------------------------------------------------------------------------------------------


def find(data: bytes, edits: list[Edit], name: str) -> list[Change]:
    """The changes that `edits` mean, in the order of the file. Raises ToolError that names every fault."""
    changes: list[Change] = []
    faults: list[str] = []
    for number, edit in enumerate(edits, 1):
        label = f"edit {number}: " if len(edits) > 1 else ""
        spans = _spans(data, edit.old)
        if not spans:
            faults.append(f"{label}old_text not found in {name}{_nearest(data, edit.old)}")
        elif len(spans) > 1 and not edit.all:
            faults.append(
                f"{label}old_text occurs {len(spans)} times in {name} (lines {_lines(data, spans)}); "
                "add lines around it, or set replace_all"
            )
        else:
            spans = list(_apart(spans))
            changes += [Change(a, b, _with_line_ends(edit, data, a, b), number) for a, b in spans]
    changes.sort(key=lambda change: (change.start, change.end))
    for one, other in itertools.pairwise(changes):
        if other.start < one.end:
            line = data.count(b"\n", 0, other.start) + 1
            faults.append(f"edits {one.number} and {other.number} overlap at line {line}; join them into one")
    if faults:
        raise ToolError("\n".join(faults) + "\nNothing was changed.")
    return changes


def apply(data: bytes, changes: list[Change]) -> bytes:
    """`data` with `changes`, which are in order and apart."""
    parts, at = [], 0
    for change in changes:
        parts += [data[at : change.start], change.new]
        at = change.end
    return b"".join([*parts, data[at:]])


def _spans(data: bytes, old: bytes) -> list[tuple[int, int]]:
    """Where `old` stands, overlapping places too; if nowhere exactly, then with the line ends of the file."""
    spans, at = [], data.find(old)
    while at >= 0:
        spans.append((at, at + len(old)))
        at = data.find(old, at + 1)
    if spans or b"\n" not in old:
        return spans
    pattern = rb"\r?\n".join(re.escape(line) for line in re.split(rb"\r?\n", old))
    return [found.span() for found in re.finditer(pattern, data)]


def _apart(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Those that do not overlap one before, as ``replace`` would take them."""
    at = 0
    for start, end in spans:
        if start >= at:
            yield start, end
            at = end


def _with_line_ends(edit: Edit, data: bytes, start: int, end: int) -> bytes:
    """The new text with the line ends of what it stands for; where that has none, with those of the file."""
    region = data[start:end]
    if b"\n" in region:
        crlf = b"\r\n" in region
    else:
        crlf = 2 * data.count(b"\r\n") > data.count(b"\n")
    if crlf:
        return re.sub(rb"\r?\n", b"\r\n", edit.new)
    return edit.new if region == edit.old else edit.new.replace(b"\r\n", b"\n")


def _lines(data: bytes, spans: list[tuple[int, int]]) -> str:
    numbers = [str(data.count(b"\n", 0, start) + 1) for start, _ in spans[:PLACES_SHOWN]]
    return ", ".join(numbers) + (", ..." if len(spans) > PLACES_SHOWN else "")


def _nearest(data: bytes, old: bytes) -> str:
    """Up to three lines most like the first line of `old`, each with what differs; an empty text if none is like it."""
    wanted = next((line.strip() for line in old.decode().splitlines() if line.strip()), "")
    lines = [line.decode("utf-8", "replace").rstrip("\r") for line in data.split(b"\n", NEAR_LINES)[:NEAR_LINES]]
    alike = [n for n, line in enumerate(lines) if wanted and _plain(line) == _plain(wanted)]
    if len(alike) < 3 and wanted:
        close = difflib.get_close_matches(wanted, {line.strip(): None for line in lines if len(line) < 500}, 3, 0.6)
        alike += [n for text in close for n, line in enumerate(lines) if line.strip() == text and n not in alike]
    if not alike:
        return "; read the file again"
    places = "".join(f"\n  line {n + 1}: {lines[n][:200]}{_difference(lines[n], wanted)}" for n in alike[:3])
    return f"; nearest lines:{places}"


def _plain(line: str) -> str:
    """A line without what is easily got wrong: white space, kind of quotes, case."""
    return re.sub(r"\s+", "", line).translate(str.maketrans("‘’“”`", "''\"\"'")).replace('"', "'").lower()


def _difference(line: str, wanted: str) -> str:
    if line.strip() == wanted:
        return "  (this line is as in old_text; indentation or the lines after it differ)"
    if "".join(line.split()) == "".join(wanted.split()):
        return "  (white space differs)"
    return "  (quotes or case differ)" if _plain(line) == _plain(wanted) else ""


TOOL = Tool(
    "edit",
    "Replace exact text in a file. Each old_text must occur once; edits apply together or not at all.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "old_text": {"type": "string"},
                        "new_text": {"type": "string"},
                        "replace_all": {"type": "boolean"},
                    },
                    "required": ["old_text", "new_text"],
                },
            },
        },
        "required": ["path", "edits"],
    },
    action,
    run,
)
