"""Joining: coming to a chat that has a worker already, with flags that say how it is to run."""

from cass import inbox, presence, send, standing
from cass.config import Options
from cass.flags import flags
from cass.home import Files

PATIENCE_S = 10
"""An idle worker ends within that."""
_SHOWN = ("mode", "provider", "model", "effort")
"""What a worker says of how it runs; the rest of its flags only it knows."""


def join(files: Files, options: Options) -> str:
    """See to it that no worker runs otherwise than `options` say: one that is idle is ended, for another to be started.

    Return why that cannot be: it is at work. Raises NoWorker and Held where a program that is no worker holds the chat.
    """
    asked = {name: value for name, value in options._asdict().items() if value is not None and name != "layout"}
    if not asked or not presence.is_running(files):
        return ""
    now = standing.look(files)
    other = {name: asked[name] for name in asked if name not in _SHOWN or getattr(now, name) != asked[name]}
    if other and (now.is_busy or inbox.waiting(files)):
        said, chat = " ".join(word for word in flags(other) if word.startswith("--")), files.chat_id
        return f"{said}: its worker is at work, and goes on as it is; first: cass wait {chat}, or cass stop {chat}"
    if other:
        send.stop(files, PATIENCE_S)
    return ""
