"""The Markdown of a chat: readable as it is, and rendered by whoever renders Markdown."""

from collections.abc import Sequence

from cass.blocks import Block, Call, Moved
from cass.export import document
from cass.headline import as_json, headline, pictured
from cass.records import Approval, Assistant, Compaction, Fact, Notice, TurnEnd, User
from cass.visible import safe, safe_line


def markdown(records: Sequence[Fact]) -> str:
    """The whole chat."""
    rows = "\n".join(f"- {name}: {_code(value)}" for name, value in document.facts(document.meta_of(records)))
    parts = [f"# {_escaped(document.title(records))}", rows]
    parts += [part for block in document.blocks(records) if (part := _part(block))]
    return "\n\n".join(parts) + "\n"


def _part(block: Block) -> str:
    match block:
        case User():
            images = "\n".join(f"- {_escaped(pictured(image))}" for image in block.attachments)
            return f"## You\n\n{_quoted(safe(block.content))}" + (f"\n\n{images}" if images else "")
        case Assistant():
            return _answer(block)
        case Call():
            return _call(block)
        case Approval():
            return f"*{_escaped(document.decision(block))}*"
        case Compaction(summary=""):
            return "*What stands above was cleared from the model's context.*"
        case Compaction():
            return f"*What stands above was replaced by a summary:*\n\n{_quoted(safe(block.summary))}"
        case TurnEnd():
            return f"**{_escaped(ended)}**" if (ended := document.ending(block)) else ""
        case Moved():
            return f"*The workspace is now* {_code(safe_line(block.cwd))}"
        case Notice():
            return f"*{_escaped(safe(block.text))}*"
    return ""


def _answer(message: Assistant) -> str:
    parts = ["## Assistant"]
    if message.reasoning:
        parts.append(f"<details><summary>Reasoning</summary>\n\n{_fenced(safe(message.reasoning))}\n\n</details>")
    if message.content.strip():
        parts.append(safe(message.content).strip("\n"))
    return "\n\n".join(parts) if len(parts) > 1 else ""


def _call(call: Call) -> str:
    first, *more = headline(call.call).split("\n")
    parts = [f"### {_escaped(safe_line(call.call.name))} {_code(first)} · {document.state(call)}"]
    parts += [_fenced("\n".join([first, *more]))] if more else []
    if call.approval is not None:
        parts.append(f"*{_escaped(document.decision(call.approval))}*")
    if call.result is not None and call.result.diff:
        parts.append(_fenced(safe(call.result.diff).rstrip("\n"), "diff"))
    elif call.call.name not in ("read", "ls", "grep", "shell", "fetch", "agent") and not more and call.call.arguments:
        parts.append(_fenced(safe(as_json(call.call.arguments, 2)), "json"))
    if call.result is not None and call.result.content.strip():
        parts.append(_fenced(safe(call.result.content).strip("\n")))
    return "\n\n".join(parts)


def _fenced(text: str, info: str = "") -> str:
    fence = "`" * max(3, document.longest_run(text) + 1)
    return f"{fence}{info}\n{text}\n{fence}"


def _code(text: str) -> str:
    mark = "`" * (document.longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{mark}{pad}{text}{pad}{mark}" if text else ""


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\`*_[]<>#" else character for character in text)
