"""The warning: what stands below a question about something that nothing holds back, on every screen alike."""

from cass.records import ApprovalRequest
from cass.rules import FETCHES, MCP, READS, RUNS, WRITES


def of(request: ApprovalRequest) -> str:
    """In a line; "" where cass itself does what is asked, or the sandbox holds it."""
    if request.sandboxed or request.name in READS | WRITES | FETCHES:
        return ""
    if request.name in RUNS:
        return "not sandboxed: this command can do anything you can"
    if request.name.startswith(MCP):
        return "not sandboxed: what the MCP server makes of this is up to the server"
    return "not sandboxed: this tool can do anything you can"
