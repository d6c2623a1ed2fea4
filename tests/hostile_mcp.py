"""A server of our own that does what servers should not: hostile.py WAY. Without a way it behaves.

The protocol by hand, in few lines: https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
"""

import json
import os
import sys
import time

WAY = sys.argv[1] if len(sys.argv) > 1 else ""
SCHEMA = {"$schema": "x", "type": "object", "properties": {"text": {"type": "string"}}}


def say(message: dict) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def noise(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def tools() -> list[dict]:
    names = ["echo", "die", "large", "hang", "slow", "more", "environ", "glue", "fail", "picture", "structured"]
    found = [{"name": name, "description": f"Does {name}.", "inputSchema": SCHEMA} for name in names]
    if WAY == "names":
        odd = ["admin.tools.list", "日本語", "x" * 70, "x" * 71, "shell", "a\x1b[2Jb", "echo"]
        found = [{"name": name, "description": "\x1b[31mred‮", "inputSchema": SCHEMA} for name in odd]
    if LISTED:
        found.append({"name": "late", "description": "Came later.", "inputSchema": SCHEMA})
    return found


LISTED: list[str] = []


def text(said: str, **more: object) -> dict:
    return {"content": [{"type": "text", "text": said}], **more}


def call(id: object, name: str, arguments: dict, meta: dict) -> None:
    result = text(f"you said {arguments.get('text')}")
    if name == "die":
        print("I cannot go on", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9)
    elif name == "large":
        result = text("x" * 10_000_000)
    elif name == "hang":
        return
    elif name == "slow":
        for step in range(1, 4):
            progress = {"progressToken": meta.get("progressToken"), "progress": step, "total": 3, "message": "step"}
            say({"method": "notifications/progress", "params": progress})
            time.sleep(0.02)
    elif name == "more":
        LISTED.append("late")
        say({"method": "notifications/tools/list_changed"})
    elif name == "environ":
        result = text(json.dumps({"cwd": os.getcwd(), "pid": os.getpid(), **os.environ}))
    elif name == "glue":
        noise(b"INFO done ")
    elif name == "fail":
        result = text("there is no such thing", isError=True)
    elif name == "picture":
        picture = {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}
        linked = {"type": "resource_link", "uri": "file:///a", "name": "a"}
        result = {"content": [{"type": "text", "text": "Here:"}, picture, linked]}
    elif name == "structured":
        result = {"content": [], "structuredContent": {"degrees": 21}}
    if WAY == "noise":
        sys.stderr.write("e" * 1_000_000)
        noise(b"\xff\xfe not UTF-8\n")
    say({"id": id, "result": result})


def main() -> None:
    if WAY == "exit":
        sys.exit("no licence found")
    if WAY == "noise":
        noise(b'My MCP server v1\n\n{"level":"info"}\n')
    for line in sys.stdin:
        if WAY == "silent":
            continue
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                capabilities = {"tools": {"listChanged": True}}
                info = {"name": "hostile", "version": "1"}
                version = message["params"]["protocolVersion"]
                result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
                say({"id": message["id"], "result": result})
            case "tools/list":
                say({"id": message["id"], "result": {"tools": tools()}})
            case "tools/call":
                params = message["params"]
                call(message["id"], params["name"], params.get("arguments") or {}, params.get("_meta") or {})
            case _ if "id" in message:
                say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})


main()
