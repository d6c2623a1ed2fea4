"""A verdict given on the command line: `cass approve` and `cass deny`."""

import sys

from cass import decisions, jsonl, presence, status
from cass.errors import Blocked, CassError, NoWorker
from cass.home import Files
from cass.records import ApprovalRequest
from cass.visible import safe

UNSANDBOXED = "not sandboxed: this command can do anything you can"


def give(
    files: Files, request_id: str | None, *, approve: bool, always: bool = False, reason: str | None = None
) -> None:
    """Decide what waits in a chat. Without a request id it is shown and asked for, which needs a terminal.

    Raises NoWorker, Blocked where a terminal is missing, CassError with the worker's own words when it refuses.
    """
    if not presence.is_running(files):
        raise NoWorker(f"no worker is running for {files.chat_id}: nothing waits for a decision")
    if request_id is None:
        request_id = _asked(files, "approve" if approve else "deny")
        if request_id is None:
            return
    request: dict[str, object] = {"do": "approve" if approve else "deny", "request_id": request_id}
    request |= {"program": f"cass {request['do']}", "always": always, "reason": reason}
    answer = decisions.ask(files, request)
    if not answer.get("ok"):
        error = CassError(str(answer.get("error")))
        error.status = int(answer.get("status") or 1)
        raise error


def _asked(files: Files, verb: str) -> str | None:
    """The id of the one request that waits, once the person has seen it and said yes; None for no."""
    pending = list(status.look(files).pending.values())
    if not pending:
        raise CassError(f"nothing waits for a decision in {files.chat_id}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Blocked(f"without a terminal name the request: cass {verb} {files.chat_id} {pending[-1].request_id}")
    print(_shown(pending[-1]))
    try:
        said = input(f"{verb}? [y/N] ")
    except EOFError:
        said = ""
    if said.strip().lower() not in ("y", "yes"):
        print("nothing was decided")
        return None
    return pending[-1].request_id


def _shown(request: ApprovalRequest) -> str:
    """The whole of what would happen, nothing of it hidden."""
    action = request.arguments.get("command")
    text = action if isinstance(action, str) else jsonl.dump(request.arguments).decode()
    lines = [f"{request.name}: {text}", f"because {request.reason}"]
    return safe("\n".join(lines if request.sandboxed else [*lines, UNSANDBOXED]))
