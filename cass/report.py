"""The report: a turn as scripts want it: the answer alone, one JSON object, or each record as it comes and then that.

{"type":"result","chat_id","id","outcome","status","answer","value"?,"error"?,"usage"?}
"""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from cass import jsonl, records
from cass.errors import CassError
from cass.exchange import Answer
from cass.home import Files
from cass.outlook import EXITS
from cass.program import err, out
from cass.records import Compaction, Notice, Record, Status

FORMATS = ("text", "json", "stream-json")


class Report(NamedTuple):
    """Where an answer goes, and in which form."""

    form: str = "text"
    output: Path | None = None
    """Gets the answer alone, in every form; with ``text`` standard output then stays empty."""

    def record(self, record: Record) -> None:
        """A record as it comes; in other forms than ``stream-json`` what matters of it, on standard error."""
        if self.form == "stream-json":
            out(records.encode(record).decode("utf-8", "surrogateescape").rstrip("\n"))
            sys.stdout.flush()
        elif said := _aside(record):
            err(said)

    def finish(self, files: Files, answer: Answer, value: Any = None) -> int:
        """The whole, and on standard error how it ended if that was not well; return the exit status.

        `value` is what the answer is as JSON, where that was asked for.
        """
        is_whole = answer.end.outcome != "cancelled"
        text = jsonl.dump(value).decode() if value is not None else answer.text if is_whole else ""
        if self.output is not None and is_whole:
            self._write(self.output, text)
        if self.form != "text":
            out(jsonl.dump(self._result(files, answer, value)).decode())
        elif text and self.output is None:
            out(text)
        if answer.end.error or answer.end.outcome != "done":
            err(f"{answer.end.outcome}: {answer.end.error or 'the turn was cancelled'}", f"chat: {files.chat_id}")
        return EXITS[answer.end.outcome]

    def _result(self, files: Files, answer: Answer, value: Any) -> dict[str, Any]:
        end = answer.end
        made = {
            "type": "result",
            "chat_id": files.chat_id,
            "id": answer.id,
            "outcome": end.outcome,
            "status": EXITS[end.outcome],
            "answer": answer.text,
        }
        made |= {"value": value} if value is not None else {}
        made |= {"error": end.error} if end.error else {}
        return made | ({"usage": asdict(end.usage)} if end.usage is not None else {})

    def _write(self, path: Path, text: str) -> None:
        try:
            with open(path, "wb") as file:
                file.write(f"{text}\n".encode("utf-8", "surrogateescape"))
        except OSError as e:
            raise CassError(f"{path}: {e.strerror or os.strerror(e.errno or 0)}; the answer is in the chat") from e


def _aside(record: Record) -> str | None:
    """What whoever waits for an answer should hear meanwhile; most records are the answer itself."""
    match record:
        case Notice(level="warning" | "error", text=text):
            return text
        case Status(state="retrying", detail=str(detail)):
            return f"retrying: {detail}"
        case Compaction(tokens_before=tokens):
            return f"compacted: {tokens:,} tokens became a summary"
    return None
