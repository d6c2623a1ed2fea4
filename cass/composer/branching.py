"""Branching, at the composer: a point of the chat is picked, and `cass branch` carries it out.

That program reads the chat and knows the files; nothing of it is loaded here.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from cass import jsonl
from cass.composer import subcommand
from cass.composer.seat import Seat
from cass.errors import CassError
from cass.visible import safe_line


class Composing(Protocol):
    """What it may use of the composer."""

    seat: Seat

    def say(self, command: str, text: str) -> None: ...
    def hint(self, text: str) -> None: ...
    def do(self, work: Coroutine[Any, Any, None]) -> None: ...
    def leave(self, *switch_to: str) -> None: ...
    def pick(self, title: str, choices: Sequence[str], then: Callable[[int], None], at: int = 0) -> None: ...


class Branching:
    def __init__(self, composer: Composing) -> None:
        self._composer = composer

    def branch(self) -> None:
        """Have a point picked and go on from there in a new chat, with the files of then if the person wants that."""
        self._choose("go back to a point, in a new chat", self._offer_branch)

    def restore(self) -> None:
        """Have a point picked and take the files back to it, after the plan was seen."""
        self._choose("take the files back to a point", self._offer_restore)

    def _choose(self, title: str, then: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        async def choose() -> None:
            points = folded(await self._run("--list", "--json"))
            if not points:
                raise CassError("nothing was said in this chat yet")
            lines = [point["line"] for point in points]
            # Where most people want to go: before what they said last.
            last = max((n for n, point in enumerate(points) if point["kind"] == "user"), default=len(points) - 1)
            self._composer.pick(title, lines, lambda n: self._do(then(str(points[n]["number"]))), last)

        self._do(choose())

    async def _offer_branch(self, number: str) -> None:
        plan = await self._plan(number)
        if not any(file["conflict"] is None for file in plan):
            await self._branch(number)
            return
        self._show("/branch", plan)
        choices = ("branch, and leave the files as they are", f"branch, and restore {_files(plan)}")
        more: tuple[tuple[str, ...], ...] = ((), ("--restore", "--yes"))
        self._composer.pick("what of the files?", choices, lambda n: self._do(self._branch(number, *more[n])))

    async def _offer_restore(self, number: str) -> None:
        plan = await self._plan(number)
        if plan:
            self._show("/restore", plan)
        if not any(file["conflict"] is None for file in plan):
            raise CassError("no file is to be restored")
        choices = (f"restore {_files(plan)}", "leave them as they are")
        self._composer.pick("what of the files?", choices, lambda n: None if n else self._do(self._restore(number)))

    async def _plan(self, number: str) -> list[dict[str, Any]]:
        found = await self._run(number, "--files-only", "--dry-run", "--json")
        files: list[dict[str, Any]] = found["files"]
        return files

    async def _branch(self, number: str, *more: str) -> None:
        said = await self._run(number, "--json", *more)
        if any(file["conflict"] for file in said["files"]):
            self._show("/branch", said["files"])
        self._composer.leave("--resume", said["chat_id"])

    async def _restore(self, number: str) -> None:
        said = await self._run(number, "--files-only", "--yes", "--json")
        if any(file["conflict"] for file in said["files"]):
            self._show("/restore", said["files"])
        self._composer.hint(f"{_files(said['files'])} restored; /restore to the last point undoes it")

    def _show(self, command: str, files: Sequence[dict[str, Any]]) -> None:
        self._composer.say(command, "".join(f"  {safe_line(file['line'])}\n" for file in files))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        self._composer.do(subcommand.hinting(work, self._composer.hint))

    async def _run(self, *arguments: str) -> Any:
        """What `cass branch` of this chat says, as JSON. Raises CassError."""
        files = self._composer.seat.files
        return jsonl.load(await subcommand.run(files, "branch", files.chat_id, *arguments))


def folded(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points that most people mean: their messages, the answers to them, and the last; no calls in between."""
    calls = ("call", "result")
    after = [*(point["kind"] for point in points[1:]), ""]
    return [
        point
        for point, next_kind in zip(points, after, strict=False)
        if not next_kind or point["kind"] == "user" or (point["kind"] == "assistant" and next_kind not in calls)
    ]


def _files(plan: Sequence[dict[str, Any]]) -> str:
    count = sum(file["conflict"] is None for file in plan)
    return f"{count} file{'s' if count != 1 else ''}"
