"""A host's tool: a function of the program that embeds cass, which the model may call.

The function runs in that program, with all that it may do. What it does at most is its program's word, and decides in
which modes it is offered and when the person is asked.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from cass.access import Action, Effect
from cass.errors import UsageError
from cass.pattern import pattern
from cass.tools.arguments import Given, in_order
from cass.tools.paths import Place, reach
from cass.tools.tool import Arguments, Outcome, Tool

_NAME = pattern(r"[a-zA-Z]\w{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTool:
    """One thing that a model can have the host program do. Raises UsageError where a part of it cannot be."""

    name: str
    """Letters, digits and ``_``; none of cass's own tools has it."""
    description: str
    parameters: dict[str, Any]
    """The JSON schema of an object. Models keep to it by and large: the function checks what it gets."""
    run: Callable[[dict[str, Any]], Awaitable[str] | AsyncGenerator[str, None]]
    """Takes the arguments; a coroutine returns the result, an async generator yields it in pieces that are shown as
    they come. ToolError is what the model should read; any other exception is a bug, and its traceback is printed.
    It is cancelled with the turn."""
    effect: Effect | str = Effect.RUNS
    """``reads``: offered in every mode, never asked. ``writes``: as `write`, and asked each time where `paths` is
    empty. ``runs``: as `shell`, without a sandbox."""
    paths: tuple[str, ...] = ()
    """Names of arguments that are paths, or lists of such: outside the workspace they are refused or asked as for every
    tool, and `run` gets them absolute and resolved."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"a tool's name is a letter and then letters, digits or _, 64 at most, not {self.name!r}")
        if self.effect not in tuple(Effect):
            raise UsageError(f"the tool {self.name}: its effect is one of {', '.join(Effect)}, not {self.effect!r}")
        if self.parameters.get("type") != "object":
            raise UsageError(f'the tool {self.name}: its parameters are a JSON schema with "type": "object"')


def as_tool(host: HostTool) -> Tool:
    """The same as every other tool."""
    effect = Effect(host.effect)

    def action(arguments: Arguments, place: Place) -> Action:
        touched = [reach(text, place, write=effect is not Effect.READS) for _, text in _paths(host, arguments)]
        return Action(host.name, tuple(touched), effect=effect, given=in_order(arguments))

    async def run(arguments: Arguments, place: Place) -> AsyncGenerator[str | Outcome, None]:
        answer = host.run(resolved(host, arguments, place))
        if not isinstance(answer, AsyncGenerator):
            yield Outcome(_text(host, await answer))
            return
        pieces = []
        async with aclosing(answer) as found:
            async for piece in found:
                pieces.append(_text(host, piece))
                yield piece
        yield Outcome("".join(pieces))

    return Tool(host.name, host.description, host.parameters, action, run)


def _paths(host: HostTool, arguments: Arguments) -> Iterator[tuple[str, str]]:
    """Name of the argument and text of each path among them. Raises ToolError."""
    given = Given(host.name, arguments, tuple(arguments))
    for name in host.paths:
        if name in given:
            for text in given.items(name, "a path, or a list of some"):
                yield name, given.checked_path(text, name)


def resolved(host: HostTool, arguments: Arguments, place: Place) -> dict[str, Any]:
    """The arguments, with each path as it was decided about."""
    write = Effect(host.effect) is not Effect.READS
    found: dict[str, list[str]] = {}
    for name, text in _paths(host, arguments):
        found.setdefault(name, []).append(reach(text, place, write).path)
    paths = {name: every if isinstance(arguments[name], list) else every[0] for name, every in found.items()}
    return {**arguments, **paths}


def _text(host: HostTool, said: object) -> str:
    if not isinstance(said, str):
        raise TypeError(f"the tool {host.name} gave {type(said).__name__}, not a text")
    return said
