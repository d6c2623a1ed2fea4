"""Demo: answers by fixed rules, offline; no language model.

It makes real tool calls on the person's own files, so that a newcomer sees the program work. Tests script it instead:
see `Step`.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from cass.config import Connection
from cass.context import Request
from cass.errors import ConfigError, ProviderError
from cass.jsonl import dump, load, now
from cass.pattern import pattern
from cass.records import Assistant, Delta, ToolCall, ToolResult, Usage, User

SIGN = "(demo: offline, no language model)"
HELP = (
    "I follow a few fixed rules. Try: where is main defined? · find TODO · list . · read README.md · "
    "run ls -l · write hello.txt: hello · agents list . | find TODO"
)
SHOWN_LINES = 20
DELTA_CHARS = 12


class Step(NamedTuple):
    """One answer. A script is a JSON list of such objects; the request with N assistant messages gets the Nth, from 0.

    Counting what the request holds, not what this process has sent, keeps a script in step when a worker is killed.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """``{"name", "arguments", "id"?}``."""
    deltas: int | None = None
    """Pieces that the text is streamed in; by default pieces of a few words."""
    delay_ms: int | None = None
    """Before each delta; by default that of the connection."""
    hang: bool = False
    """Says nothing more after the deltas, for ever."""
    error: str = ""
    """Fails with these words after the deltas."""
    transient: bool = False
    times: int | None = None
    """How often this step fails in one process before it succeeds; None: always."""
    stop: str | None = None


class Demo:
    """The provider of kind ``demo``."""

    def __init__(self, connection: Connection) -> None:
        """Raises ConfigError for a script that cannot be used."""
        self._delay_ms = connection.delay_ms
        self._script = None if connection.script is None else script(Path(connection.script))
        self._failed: dict[int, int] = {}

    async def stream(self, request: Request, of: str) -> AsyncIterator[Delta | Assistant]:
        number = sum(isinstance(message, Assistant) for message in request.messages)
        step = answer(request) if self._script is None else _step(self._script, number)
        delay_s = (self._delay_ms if step.delay_ms is None else step.delay_ms) / 1000
        for delta in deltas(step, of):
            await asyncio.sleep(delay_s)
            yield delta
        if step.hang:
            await asyncio.Event().wait()
        if step.error and self._failed.setdefault(number, 0) != step.times:
            self._failed[number] += 1
            raise ProviderError(step.error, transient=step.transient)
        yield message(step, request, of)

    async def aclose(self) -> None:
        pass


# ---- steps ----------------------------------------------------------------------------------------------------------


def script(path: Path) -> list[Step]:
    """The steps of a script. Raises ConfigError."""
    try:
        return [Step(**step | {"tool_calls": tuple(step.get("tool_calls", ()))}) for step in load(path.read_bytes())]
    except (OSError, ValueError, TypeError, AttributeError) as e:
        raise ConfigError(f"{path}: expected a JSON list of steps: {e}") from e


def _step(steps: list[Step], number: int) -> Step:
    return steps[number] if number < len(steps) else Step(f"The script has no step {number}.")


def deltas(step: Step, of: str) -> list[Delta]:
    """The pieces of a step, whose whole is `message`."""
    pieces = [Delta(of=of, reasoning=piece) for piece in _cut(step.reasoning, None)]
    pieces += [Delta(of=of, text=piece) for piece in _cut(step.text, step.deltas)]
    for index, call in enumerate(_calls(step, of)):
        arguments = dump(call.arguments).decode()
        pieces.append(
            Delta(of=of, tool_call={"index": index, "id": call.id, "name": call.name, "arguments": arguments})
        )
    return pieces


def message(step: Step, request: Request, of: str) -> Assistant:
    """The whole of a step. Its usage is counted as bytes / 4."""
    calls = _calls(step, of)
    read = len(request.system) + sum(len(said.content) for said in request.messages)
    written = len(step.text) + len(step.reasoning) + sum(len(dump(call.arguments)) for call in calls)
    return Assistant(
        id=of,
        content=step.text,
        reasoning=step.reasoning or None,
        tool_calls=calls,
        model=request.model,
        stop=step.stop or ("tool_calls" if calls else "stop"),
        usage=Usage(input=read // 4, output=written // 4, reasoning=len(step.reasoning) // 4),
        created_at=now(),
    )


def _calls(step: Step, of: str) -> tuple[ToolCall, ...]:
    """Calls of a step; ids come from that of the message, so that deltas and whole agree."""
    return tuple(
        ToolCall(call.get("id") or f"{of}-{number}", call["name"], call.get("arguments", {}))
        for number, call in enumerate(step.tool_calls)
    )


def _cut(text: str, pieces: int | None) -> list[str]:
    size = DELTA_CHARS if pieces is None else max(1, -(-len(text) // max(1, pieces)))
    return [text[start : start + size] for start in range(0, len(text), size)]


# ---- rules ----------------------------------------------------------------------------------------------------------

_WHERE = pattern(r"(?:where|who|what)\s+(?:is|are|defines?)\s+(?:the\s+|an?\s+)?(.+?)(\s+defined)?", re.IGNORECASE)
_FIND = pattern(r"(?:find|search(?:\s+for)?|grep)\s+(?:all\s+|the\s+)?(.+)", re.IGNORECASE)
_LIST = pattern(r"(?:list|ls|what\s+files)\b\s*(.*)", re.IGNORECASE)
_READ = pattern(r"(?:show|read|open|cat|print)\s+(?:me\s+)?(?:the\s+file\s+|the\s+)?(.+)", re.IGNORECASE)
_RUN = pattern(r"(?:run|\$)\s+(.+)", re.IGNORECASE | re.DOTALL)
_FETCH = pattern(r"fetch\s+(\S+)", re.IGNORECASE)
_WRITE = pattern(r"write\s+(\S+?):\s?(.*)", re.IGNORECASE | re.DOTALL)
_AGENTS = pattern(r"agents?\s+(.+)", re.IGNORECASE | re.DOTALL)
_DEFINES = r"\b(def|class|fn|func|function|struct|type|const|let|int|void)\s+{name}\b"
_MODES = "begin with --workspace-edit or --full-access, or change it with Shift-Tab where you type"
_FILLERS = frozenset("a all and contents directory files file folder in me of please the".split())


def answer(request: Request) -> Step:
    """What the rules say to a request."""
    last = max((n for n, said in enumerate(request.messages) if isinstance(said, User)), default=None)
    if last is None:
        return Step(f"{SIGN} {HELP}")
    user = request.messages[last]
    assert isinstance(user, User)
    results = [said for said in request.messages[last:] if isinstance(said, ToolResult)]
    if results:
        return Step("\n\n".join([SIGN, *map(_report, results)]))
    step = _call(user.content.strip(), {tool["name"] for tool in request.tools})
    given = _given(user)
    return step._replace(text=step.text.replace(SIGN, f"{SIGN} I was given {given}.", 1)) if given else step


def _given(user: User) -> str:
    """``one image, 640x480``; "" where there is none."""
    sizes = [f"{one.width}x{one.height}" for one in user.attachments]
    if not sizes:
        return ""
    return f"{'one image' if len(sizes) == 1 else f'{len(sizes)} images'}, {', '.join(sizes)}"


def _report(result: ToolResult) -> str:
    """A result as a code block, shortened."""
    lines = result.content.rstrip().splitlines()
    more = [f"... and {len(lines) - SHOWN_LINES} lines more"] if len(lines) > SHOWN_LINES else []
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", result.content))])
    verb = "says" if result.ok else "failed"
    return "\n".join([f"{result.name} {verb}:", "", fence, *lines[:SHOWN_LINES], *more, fence])


def _call(text: str, offered: set[str]) -> Step:
    if "agent" in offered and (found := _AGENTS.fullmatch(text)):
        prompts = [prompt.strip() for prompt in found[1].split("|") if prompt.strip()]
        calls = tuple({"name": "agent", "arguments": {"prompt": prompt}} for prompt in prompts)
        return Step(f"{SIGN} I call an agent for each.", tool_calls=calls)
    name, arguments = _wanted(text)
    if not name:
        return Step(f"{SIGN} {HELP}")
    if name not in offered:
        return Step(f"{SIGN} {name} is not available in this mode: {_MODES}.")
    return Step(f"{SIGN} I call {name}.", tool_calls=({"name": name, "arguments": arguments},))


def _wanted(text: str) -> tuple[str, dict[str, Any]]:
    """Name and arguments of the tool that `text` asks for; no name: none is recognised."""
    if found := _WRITE.fullmatch(text):
        return "write", {"path": found[1], "content": found[2].rstrip("\n") + "\n"}
    if found := _FETCH.fullmatch(text):
        return "fetch", {"url": found[1]}
    if found := _RUN.fullmatch(text):
        return "shell", {"command": found[1].strip("`")}
    plain = text.rstrip("?!. ") if not text.endswith("..") else text
    if found := _WHERE.fullmatch(plain):
        name = found[1].strip("`'\"() ")
        if re.fullmatch(r"\w+", name):
            return "grep", {"query": _DEFINES.format(name=name), "paths": ["."], "regex": True, "case_sensitive": True}
        return "grep", {"query": name, "paths": ["."]}
    if found := _FIND.fullmatch(plain):
        return "grep", {"query": found[1].strip("`'\""), "paths": ["."]}
    if found := _LIST.fullmatch(text.rstrip("?! ")):
        return "ls", {"path": next(iter(_paths(found[1])), ".")}
    if found := _READ.fullmatch(text.rstrip("?! ")):
        return "read", {"files": [{"path": path} for path in _paths(found[1])] or [{"path": "README.md"}]}
    return "", {}


def _paths(text: str) -> list[str]:
    """The words of `text` that may be paths."""
    words = (word.strip("`'\",;") for word in text.split())
    return [word for word in words if word and word.lower() not in _FILLERS]
