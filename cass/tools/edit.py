"""The tool edit: exact replacements in one file, all of them or none.

Everything happens on bytes, so that what is not spoken of stays as it is: other encodings, line ends, a byte order
mark. A line break in an old text matches the file's own, and the new text then gets the same.
"""

import codecs
import itertools
import os
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any

from cass.access import Action
from cass.errors import ToolError
from cass.tools import diff, strides
from cass.tools.arguments import Given
from cass.tools.aside import Stop, aside
from cass.tools.nearest import nearest
from cass.tools.paths import Place, open_file, reach, read_all, shown
from cass.tools.strides import Bytes
from cass.tools.tool import Arguments, Outcome, Tool
from cass.tools.write import check_asked, digest, look, replace

SIZE_LIMIT = 512 << 20
"""The file is held in memory about twice."""
PLACES_SHOWN = 5
PLACES_COUNTED = 1_000
"""Of a text that should occur once."""
PLACES_LISTED = 100_000
"""Changes held at once, where several edits are to be kept apart: about 30 MB."""
FAULTS_SHOWN = 10
FAULTS_EXPLAINED = 3
"""By the nearest lines, which take up to a second each."""

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
    arguments = _named(arguments, "edit")
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
    item = _named(item, f"edit {number}")
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


def _named(values: Arguments, what: str) -> dict[str, Any]:
    """`values` under our names. Raises ToolError where one is said twice: who reads them must not choose."""
    if twice := [name for name in _ALIASES if name in values and _ALIASES[name] in values]:
        raise ToolError(f'{what}: "{twice[0]}" is another word for "{_ALIASES[twice[0]]}": give one of them')
    return {_ALIASES.get(name, name): value for name, value in values.items()}


def propose(arguments: Arguments, place: Place) -> str | None:
    path, edits = _parse(arguments)
    raw = look(path, place)
    try:
        if not raw or len(raw) > diff.SIZE_LIMIT:
            return None
        data = _text(raw, path)[0]
        return diff.unified(data, applied(data, edits, path)[0], whole=True)
    except ToolError:  # what is wrong is told once it may be read
        return None


def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
    return aside(lambda stop: _outcome(arguments, place, stop), changes=True)


def _outcome(arguments: Arguments, place: Place, stop: Stop) -> Outcome:
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
    check_asked(path, raw, place)
    data, codec = _text(raw, shown(path, place))
    changed, places = applied(data, edits, shown(path, place))
    new = changed if codec is None else strides.recoded(changed, "utf-8", codec)
    note = replace(path, new, place, status, stop)
    stale = path in place.seen and place.seen[path] != digest(raw)
    if stale:
        note += "; it had also changed otherwise since it was read in this chat"
    # What the model has not seen stays unseen: a later write must not go over it.
    known = path in place.seen and not stale
    summary = _summary(path, edits, places, place) + note
    return Outcome(summary, seen={path: digest(new)} if known else {}, diff=diff.unified(data, changed))


def _summary(path: str, edits: list[Edit], places: int, place: Place) -> str:
    done = f"{len(edits)} edit{'s' if len(edits) > 1 else ''}"
    if places > len(edits):
        done += f" in {places:,} places"
    return f"Applied {done} to {shown(path, place)}"


def _text(raw: Bytes, name: str) -> tuple[Bytes, str | None]:
    """What is edited of the file `name`, and the codec that it is put back through. Raises ToolError."""
    codec = _codec(raw)
    return (raw if codec is None else _decoded(raw, codec, name)), codec


def _codec(raw: Bytes) -> str | None:
    """The codec to edit through, for UTF-16 with its mark; None for everything else, which is edited as it is."""
    return {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(bytes(raw[:2]))


def _decoded(raw: Bytes, codec: str, name: str) -> bytearray:
    try:
        return strides.recoded(raw, codec, "utf-8")
    except UnicodeDecodeError as e:
        raise ToolError(f"{name} begins like UTF-16 but is not; it cannot be edited") from e


# ---- finding and applying -------------------------------------------------------------------------------------------


def applied(data: Bytes, edits: list[Edit], name: str) -> tuple[Bytes, int]:
    """`data` after `edits`, and how many places were changed. Raises ToolError that names every fault."""
    if len(edits) == 1 and edits[0].all and strides.find(data, edits[0].old) >= 0:
        return _replaced(data, edits[0], name)
    changes = find(data, edits, name)
    _check_size(len(data) + sum(len(change.new) - (change.end - change.start) for change in changes), name)
    return apply(data, changes), len(changes)


def _replaced(data: Bytes, edit: Edit, name: str) -> tuple[Bytes, int]:
    """The same for a text that is replaced wherever it stands, however often: no place of it is held."""
    new, places = _with_line_ends(edit, edit.old, _uses_crlf(data)), strides.count(data, edit.old)
    _check_size(len(data) + places * (len(new) - len(edit.old)), name)
    return strides.replaced(data, edit.old, new), places


def _check_size(size: int, name: str) -> None:
    if size > SIZE_LIMIT:
        raise ToolError(f"{name} would become too large ({size:,} bytes)\nNothing was changed.")


def find(data: Bytes, edits: list[Edit], name: str) -> list[Change]:
    """The changes that `edits` mean, in the order of the file. Raises ToolError that names every fault."""
    changes: list[Change] = []
    faults: list[str] = []
    crlf = _uses_crlf(data)
    for number, edit in enumerate(edits, 1):
        label = f"edit {number}: " if len(edits) > 1 else ""
        most = PLACES_LISTED - len(changes) if edit.all else PLACES_COUNTED
        spans = list(itertools.islice(_spans(data, edit), most + 1))
        if not spans:
            near = nearest(data, edit.old) if len(faults) < FAULTS_EXPLAINED else ""
            faults.append(f"{label}old_text not found in {name}{near}")
        elif len(spans) > most and edit.all:
            faults.append(f"{label}old_text occurs too often for one call in {name}; make it the only edit of a call")
        elif len(spans) > 1 and not edit.all:
            times = f"{len(spans)} times" if len(spans) <= most else f"more than {most:,} times"
            faults.append(
                f"{label}old_text occurs {times} in {name} (lines {_lines(data, spans)}); "
                "add lines around it, or set replace_all"
            )
        else:
            regions = {bytes(data[start:end]) for start, end in spans}
            texts = {region: _with_line_ends(edit, region, crlf) for region in regions}
            changes += [Change(start, end, texts[bytes(data[start:end])], number) for start, end in spans]
    changes.sort(key=lambda change: (change.start, change.end))
    faults += itertools.islice(_overlaps(data, changes), FAULTS_SHOWN)
    if faults:
        if len(faults) > FAULTS_SHOWN:
            faults[FAULTS_SHOWN:] = [f"{len(faults) - FAULTS_SHOWN} more like these"]
        raise ToolError("\n".join(faults) + "\nNothing was changed.")
    return changes


def _overlaps(data: Bytes, changes: list[Change]) -> Iterator[str]:
    """What is to be said of `changes`, which are in order, where they are not apart."""
    for one, other in itertools.pairwise(changes):
        if other.start < one.end:
            line = data.count(b"\n", 0, other.start) + 1
            yield f"edits {one.number} and {other.number} overlap at line {line}; join them into one"


def apply(data: Bytes, changes: list[Change]) -> bytearray:
    """`data` with `changes`, which are in order and apart."""
    out, at = bytearray(), 0
    for change in changes:
        strides.extend(out, data, at, change.start)
        out += change.new
        at = change.end
    strides.extend(out, data, at, len(data))
    return out


def _spans(data: Bytes, edit: Edit) -> Iterator[tuple[int, int]]:
    """Where the old text stands; if nowhere exactly, then with the line ends of the file.

    Overlapping places too, for one that should be the only one; else those that ``replace`` takes.
    """
    old, at = edit.old, strides.find(data, edit.old)
    if at < 0 and b"\n" in old:
        pattern = re.compile(rb"\r?\n".join(re.escape(line) for line in re.split(rb"\r?\n", old)))
        yield from (found.span() for found in strides.matches(pattern, 2 * len(old), data))
    while at >= 0:
        yield at, at + len(old)
        at = strides.find(data, old, at + (len(old) if edit.all else 1))


def _uses_crlf(data: Bytes) -> bool:
    return 2 * strides.count(data, b"\r\n") > strides.count(data, b"\n")


def _with_line_ends(edit: Edit, region: bytes, crlf: bool) -> bytes:
    """The new text with the line ends of the `region` it stands for; where that has none, with those of the file."""
    if b"\n" in region:
        crlf = b"\r\n" in region
    if crlf:
        return re.sub(rb"\r?\n", b"\r\n", edit.new)
    return edit.new if region == edit.old else edit.new.replace(b"\r\n", b"\n")


def _lines(data: Bytes, spans: list[tuple[int, int]]) -> str:
    numbers = [str(data.count(b"\n", 0, start) + 1) for start, _ in spans[:PLACES_SHOWN]]
    return ", ".join(numbers) + (", ..." if len(spans) > PLACES_SHOWN else "")


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
    propose=propose,
)
