"""Plain: a history without tool calls, for a model that is offered no tools: many servers refuse calls without them."""

from collections.abc import Iterable
from dataclasses import replace

from cass.budget import Message
from cass.context import Request
from cass.jsonl import dump
from cass.records import Assistant, ToolResult, User


def told(request: Request) -> Request:
    """`request` with its calls and results told as text; as it is where tools are offered, or none was called."""
    if request.tools or not any(isinstance(message, ToolResult) for message in request.messages):
        return request
    return request._replace(messages=tuple(_joined(map(_plain, request.messages))))


def _plain(message: Message) -> User | Assistant:
    match message:
        case Assistant() if message.tool_calls:
            calls = (f"[I called {call.name} with {dump(call.arguments).decode()}]" for call in message.tool_calls)
            content = "\n".join(filter(None, (message.content, *calls)))
            return replace(message, content=content, tool_calls=(), raw=None)
        case ToolResult():
            outcome = "gave" if message.ok else "failed with"
            content = f"[{message.name} {outcome}:]\n{message.content}"
            return User(id=message.tool_call_id, content=content, created_at=message.created_at)
        case _:
            return message


def _joined(messages: Iterable[User | Assistant]) -> list[Message]:
    """The messages, those of the user in a row made one."""
    made: list[Message] = []
    for message in messages:
        last = made[-1] if made else None
        if isinstance(message, User) and isinstance(last, User):
            content = "\n\n".join(filter(None, (last.content, message.note, message.content)))
            made[-1] = replace(last, content=content, attachments=last.attachments + message.attachments)
        else:
            made.append(message)
    return made
