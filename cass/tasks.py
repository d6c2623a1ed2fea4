"""Tasks: the lines of a file, each a prompt and how it is to be run.

{"prompt", "id"?, "cwd"?, "worktree"?, "provider"?, "model"?, "mode"?, "effort"?, "max_turns"?, "max_tokens"?,
 "max_cost"?, "tools"?, "attach"?}
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cass import jsonl
from cass.access import Mode
from cass.errors import UsageError
from cass.pattern import pattern

_ID = pattern(r"[A-Za-z0-9_-]{1,40}")
_OPTIONS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("provider", "model", "mode", "effort"), str),
    **dict.fromkeys(("max_turns", "max_tokens"), int),
    "max_cost": (int, float),
    "tools": list,
}
_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "prompt": str,
    "id": str,
    "cwd": str,
    "worktree": (bool, str),
    "attach": list,
    **_OPTIONS,
}
_WORDS = {
    str: "a text",
    int: "a whole number",
    (int, float): "a number",
    (bool, str): "true, or a name",
    list: "a list of names",
}


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt for one chat."""

    id: str
    """As its line says; else made of what the line says, so that it is the same wherever the line stands."""
    prompt: str
    cwd: Path
    """Absolute."""
    worktree: str | None = None
    """The name of the git worktree that the chat works in; None: in `cwd` itself."""
    options: dict[str, Any] = field(default_factory=dict)
    """As of `config.Options`: those of the command line, and over them its own."""
    attach: tuple[Path, ...] = ()
    """Images that go with the prompt, absolute."""

    @property
    def digest(self) -> str:
        """Of what is asked: the same id for something else is a mistake."""
        asked = "\0".join([self.prompt, *map(str, self.attach)])
        return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read(data: bytes, name: str, cwd: Path, options: Mapping[str, Any]) -> list[Task]:
    """The tasks of a file called `name`; `cwd` is for those without one, and what relative ones begin at.

    Raises UsageError, which names file, line and key.
    """
    found: list[Task] = []
    seen: Counter[str] = Counter()
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            found.append(_task(line, f"{name}:{number}", cwd, options, seen))
    if not found:
        raise UsageError(f'{name} holds no task; a line is such as {{"prompt": "..."}}')
    return found


def _task(line: bytes, where: str, cwd: Path, options: Mapping[str, Any], seen: Counter[str]) -> Task:
    said = _checked(line, where)
    id = said.get("id")
    if id is None:
        made = hashlib.sha256(jsonl.dump(sorted(said.items()))).hexdigest()[:10]
        seen[made] += 1
        id = made if seen[made] == 1 else f"{made}-{seen[made]}"
    elif seen[f"={id}"]:
        raise UsageError(f"{where}: another task has the id {id}")
    seen[f"={id}"] += 1
    tree = said.get("worktree")
    place = (cwd / Path(said.get("cwd", ".")).expanduser()).absolute()
    return Task(
        id=id,
        prompt=said["prompt"],
        cwd=place,
        worktree=id if tree is True else tree or None,
        attach=tuple(place / Path(path).expanduser() for path in said.get("attach", ())),
        options={**options, **{key: said[key] for key in _OPTIONS if key in said}},
    )


def _checked(line: bytes, where: str) -> dict[str, Any]:
    try:
        said = jsonl.load(line)
    except ValueError as e:
        raise UsageError(f"{where}: not JSON: {getattr(e, 'msg', e)}") from None
    if not isinstance(said, dict):
        raise UsageError(f"{where}: a task is a JSON object")
    said = {key: value for key, value in said.items() if value is not None}
    for key, value in said.items():
        _check(where, key, value)
    if not str(said.get("prompt", "")).strip():
        raise UsageError(f'{where}: no "prompt"')
    return said


def _check(where: str, key: str, value: Any) -> None:
    if key not in _KEYS:
        raise UsageError(f'{where}: unknown key "{key}"; there are {", ".join(_KEYS)}')
    expected = _KEYS[key]
    if not isinstance(value, expected) or (isinstance(value, bool) and key != "worktree"):
        raise UsageError(f'{where}: "{key}" is to be {_WORDS[expected]}')
    if key.startswith("max_") and isinstance(value, int | float) and value <= 0:
        raise UsageError(f'{where}: "{key}" is to be more than 0')
    if isinstance(value, list) and not all(isinstance(name, str) for name in value):
        raise UsageError(f'{where}: "{key}" is to be {_WORDS[list]}')
    if key == "mode" and value not in tuple(Mode):
        raise UsageError(f'{where}: "mode" is to be one of {", ".join(Mode)}')
    if key == "id" and not _ID.fullmatch(str(value)):
        raise UsageError(f"{where}: an id is 1 to 40 letters, digits, '-' or '_'")


def key(path: Path | None, data: bytes) -> str:
    """The name that a file of tasks is known by, from run to run; that of standard input is made of what it holds."""
    if path is None:
        return f"stdin-{hashlib.sha256(data).hexdigest()[:12]}"
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem)[:40]
    return f"{stem}-{hashlib.sha256(bytes(path.resolve())).hexdigest()[:12]}"


def same(found: Sequence[Task], digests: Mapping[str, str]) -> None:
    """Raise UsageError where an id that was run before stands for another prompt now."""
    for task in found:
        if digests.get(task.id, task.digest) != task.digest:
            raise UsageError(
                f"the task {task.id} was run with another prompt before; give the new one an id of its own"
            )
