"""Words: the result of a call as text, which is what a model reads of it.

https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

import json
from collections.abc import Mapping
from typing import Any

LONGEST = 8 << 20
"""Characters. The chat keeps less, and says how much there was."""


def text(result: Mapping[str, Any]) -> str:
    """`result`: ``{"content": [...], "structuredContent": {...}}``, as JSON has it."""
    content = result.get("content")
    parts = [_part(part) for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    structured = result.get("structuredContent")
    if structured is not None and not any(_is_same(part, structured) for part in parts):
        parts.append(f"[structured content]\n{json.dumps(structured, ensure_ascii=False, indent=1)}")
    whole = "\n".join(parts) or "[the server answered with nothing]"
    if len(whole) > LONGEST:
        return f"{whole[:LONGEST]}\n… {len(whole) - LONGEST:,} more characters were not taken"
    return whole


def _part(part: Mapping[str, Any]) -> str:
    match part:
        case {"type": "text", "text": str(said)}:
            return said
        case {"type": "image" | "audio" as kind, "data": str(data), **rest}:
            return f"[{kind}, {rest.get('mimeType', 'of an unknown type')}, {_bytes(data)}: not shown to the model]"
        case {"type": "resource", "resource": {"text": str(said), **rest}}:
            return f"[resource {rest.get('uri', '')}]\n{said}"
        case {"type": "resource", "resource": {"blob": str(data), **rest}}:
            return f"[resource {rest.get('uri', '')}, {_bytes(data)}: not shown to the model]"
        case {"type": "resource_link", **rest}:
            return f"[resource {rest.get('uri', '')}: {rest.get('name', '')}]"
    return f"[content of an unknown kind: {str(part.get('type'))[:80]}]"


def _bytes(base64: str) -> str:
    return f"{len(base64.rstrip('=')) * 3 // 4:,} bytes"


def _is_same(said: str, structured: Any) -> bool:
    """Whether a text says what the structured content does, as servers repeat it for clients that read text only."""
    if isinstance(structured, dict) and list(structured.values()) == [said]:
        return True
    try:
        return bool(json.loads(said) == structured)
    except ValueError:
        return False
