"""Updates: the records of a chat as an editor is told of them. A fold; what comes out are messages of the protocol.

Facts go in before what is only true for now, where both are new: what the chat has settled supersedes what was live.
Source: https://agentclientprotocol.com/protocol/prompt-turn
"""

import os
from collections.abc import Iterator
from typing import Any, TypeAlias

from acp import helpers
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    CurrentModeUpdate,
    FileEditToolCallContent,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    ToolKind,
    UsageUpdate,
    UserMessageChunk,
)

from cass import hunks, lineage, warning
from cass.acp.before import Before
from cass.composer.question import subject
from cass.headline import pictured
from cass.records import (
    Approval,
    ApprovalRequest,
    Assistant,
    Delta,
    Notice,
    Record,
    Status,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    User,
)
from cass.visible import safe, safe_line
from cass.web import url

Update: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | CurrentModeUpdate
    | UsageUpdate
)

KINDS: dict[str, ToolKind] = {
    "ls": "read",
    "read": "read",
    "grep": "search",
    "write": "edit",
    "edit": "edit",
    "shell": "execute",
    "fetch": "fetch",
}
OUTPUT = 20_000
"""Characters of a tool's output that an editor is told, the last ones."""
TITLE = 200


class Updates:
    def __init__(self, before: Before, mode: str) -> None:
        self.mode = mode
        """The access mode, as far as the editor knows."""
        self.own: set[str] = set()
        """Ids of messages that came from the editor, which shows them already."""
        self._before, self._root = before, before.root
        self._said: dict[str, tuple[str, str]] = {}
        """Text and reasoning that were told of an answer that still grows, by its id."""
        self._settled: set[str] = set()
        """Ids of all whole answers."""
        self._of = ""
        """Id of the last."""
        self._open: dict[str, tuple[int, ToolCall]] = {}
        """Its open calls, each with its place in it: ids of calls repeat, what the editor calls them does not."""
        self._output: dict[str, str] = {}
        self._fresh: set[str] = set()
        """Calls with output that the editor does not know."""
        self._asked_by_agents: dict[str, str] = {}
        """What the editor calls the calls of agents that it was asked about, by the id of the request."""
        self._used: tuple[int, int] | None = None

    def step(self, record: Record) -> list[Update]:
        """Fold one record in; what is to be told now."""
        match record:
            case User() if record.id not in self.own:
                said = "\n".join([safe(record.content), *map(pictured, record.attachments)])
                return [helpers.update_user_message_text(said)]
            case Delta() if record.of not in self._settled:
                return self._grow(record.of, record.text or "", record.reasoning or "")
            case Assistant():
                return self._whole(record)
            case ToolStarted(tool_call_id=id) if id in self._open:
                return [helpers.update_tool_call(self._name(id), status="in_progress")]
            case ToolOutput(tool_call_id=id) if id in self._open:
                self._output[id] = (self._output.get(id, "") + record.text)[-OUTPUT:]
                self._fresh.add(id)
            case ToolResult(tool_call_id=id) if id in self._open:
                return [self._result(record)]
            case Approval(request_id=id) if name := self._asked_by_agents.pop(id, ""):
                is_done = record.decision == "approved"
                return [helpers.update_tool_call(name, status="completed" if is_done else "failed")]
            case Status():
                return list(self._status(record))
            case Notice(level="warning" | "error"):
                return [helpers.update_agent_thought_text(f"{safe(record.text)}\n")]
        return []

    def flush(self) -> list[Update]:
        """What running tools have put out since last time."""
        fresh, self._fresh = self._fresh & self._open.keys(), set()
        return [helpers.update_tool_call(self._name(id), content=[_text(self._output[id])]) for id in sorted(fresh)]

    def question(self, request: ApprovalRequest) -> ToolCallUpdate:
        """The call that waits for an approval, with all that it would do; what an agent asks is one of its own."""
        call = ToolCall(request.tool_call_id, request.name, request.arguments)
        name, of = self._name(call.id), lineage.of_agent(request.agent)
        if request.agent:
            name = self._asked_by_agents[request.request_id] = f"{name}-{request.request_id}"
        because = "; ".join(filter(None, (request.reason, warning.of(request))))
        return ToolCallUpdate(
            tool_call_id=name,
            title=title(call) + of,
            kind=KINDS.get(call.name, "other"),
            status="pending",
            content=[*self._asked(request), _text(f"because {because}")],
            locations=self._locations(call),
            raw_input=request.arguments,
        )

    def _asked(self, request: ApprovalRequest) -> list[Any]:
        """All that would be done: a change as the worker told it, everything else by name, however long."""
        if request.diff is not None:
            place = self._place(str(request.arguments.get("path", "")))
            return [helpers.tool_diff_content(place, new, old) for old, new in hunks.sides(request.diff)]
        return [_text("\n".join(line for _, line in subject(request)))]

    # ---- answers

    def _grow(self, of: str, text: str, reasoning: str) -> list[Update]:
        said, thought = self._said.get(of, ("", ""))
        self._said[of] = said + text, thought + reasoning
        found: list[Update] = []
        if reasoning:
            found.append(helpers.update_agent_thought_text(_next(thought, reasoning)))
        if text:
            found.append(helpers.update_agent_message_text(_next(said, text)))
        return found

    def _whole(self, answer: Assistant) -> list[Update]:
        """What of it was not told yet, and its calls."""
        said, thought = self._said.get(answer.id, ("", ""))
        text, reasoning = answer.content, answer.reasoning or ""
        found = self._grow(
            answer.id,
            text[len(said) :] if text.startswith(said) else "",
            reasoning[len(thought) :] if reasoning.startswith(thought) else "",
        )
        self._said.clear()
        self._output.clear()
        self._of = answer.id
        self._settled.add(answer.id)
        self._open = {call.id: (number, call) for number, call in enumerate(answer.tool_calls)}
        return [*found, *map(self._call, answer.tool_calls)]

    def _call(self, call: ToolCall) -> ToolCallStart:
        return helpers.start_tool_call(
            self._name(call.id),
            title(call),
            kind=KINDS.get(call.name, "other"),
            status="pending",
            content=self._edits(call) or None,
            locations=self._locations(call) or None,
            raw_input=call.arguments,
        )

    def _result(self, result: ToolResult) -> ToolCallProgress:
        name = self._name(result.tool_call_id)
        number, call = self._open.pop(result.tool_call_id)
        self._output.pop(result.tool_call_id, None)
        content: list[Any] | None = [_text(result.content[-OUTPUT:])]
        if result.ok and call.name == "edit":
            content = None  # it is shown already
        elif result.ok and call.name == "write":
            content = self._written(call, self._before.of((self._of, number)))
        return helpers.update_tool_call(name, status="completed" if result.ok else "failed", content=content)

    def _name(self, id: str) -> str:
        return f"{self._of}-{self._open[id][0]}" if id in self._open else id

    def _edits(self, call: ToolCall) -> list[FileEditToolCallContent]:
        """What an edit puts in the place of what."""
        given = call.arguments
        edits = given.get("edits", [given])
        if call.name != "edit" or not isinstance(given.get("path"), str) or not isinstance(edits, list):
            return []
        pairs = [
            (edit.get("old_text", edit.get("old_string")), edit.get("new_text", edit.get("new_string")))
            for edit in edits
            if isinstance(edit, dict)
        ]
        place = self._place(given["path"])
        return [helpers.tool_diff_content(place, str(new), str(old)) for old, new in pairs if old is not None]

    def _written(self, call: ToolCall, old: str | None) -> list[FileEditToolCallContent]:
        """What a write makes of a file that held `old`."""
        path, new = call.arguments.get("path"), call.arguments.get("content")
        if not isinstance(path, str) or not isinstance(new, str):
            return []
        return [helpers.tool_diff_content(self._place(path), new, old)]

    def _place(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._root, os.path.expanduser(path)))

    def _locations(self, call: ToolCall) -> list[ToolCallLocation]:
        return [ToolCallLocation(path=self._place(path)) for path in _paths(call)]

    # ---- the state

    def _status(self, status: Status) -> Iterator[Update]:
        if status.mode != self.mode:
            self.mode = status.mode
            yield helpers.update_current_mode(status.mode)
        if status.state == "retrying" and status.detail:
            yield helpers.update_agent_thought_text(f"{safe(status.detail)}\n")
        if status.used is not None and status.limit is not None and self._used != (status.used, status.limit):
            self._used = status.used, status.limit
            yield UsageUpdate(session_update="usage_update", used=status.used, size=status.limit)


def title(call: ToolCall) -> str:
    """What a call does, in one line."""
    given: dict[str, Any] = call.arguments
    if isinstance(command := given.get("command"), str):
        return safe_line(command)[:TITLE]
    query, address = given.get("query"), given.get("url")
    words = [call.name, *([query] if isinstance(query, str) else []), *_paths(call)]
    words += [url.shown(address)] if isinstance(address, str) else []
    return safe_line(" ".join(words))[:TITLE]


def _paths(call: ToolCall) -> list[str]:
    given = call.arguments
    files, more = given.get("files"), given.get("paths")
    found = [given.get("path")]
    found += [file.get("path") if isinstance(file, dict) else file for file in files] if isinstance(files, list) else []
    found += more if isinstance(more, list) else []
    return [path for path in found if isinstance(path, str)]


def _next(before: str, piece: str) -> str:
    """`piece` made visible, as it follows `before`: some characters are harmless behind others only."""
    last = before[-1:] if before[-1:] != "\r" else ""
    return safe(last + piece)[len(safe(last)) :]


def _text(text: str) -> Any:
    return helpers.tool_content(helpers.text_block(safe(text)))
