"""A tool: what a model may call.

`action` says what a call would touch and runs nothing; `run` is an async generator of the live output (pieces of text)
that ends with one `Outcome`. A failure is a `ToolError`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cass.access import Action
from cass.decisions import Answer
from cass.records import Approval, ApprovalRequest
from cass.tools.paths import Place

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call that ran to its end."""

    content: str
    """Plain text for the model."""
    ok: bool = True
    seen: dict[str, str] = field(default_factory=dict)
    """Files whose content the model now knows: absolute path to SHA-256 of the bytes."""
    diff: str | None = None
    """What it changed in a text file, in the unified format; for people, never sent to the model."""
    notice: str | None = None
    """What the person must see besides the result, in one line."""


class Asked(NamedTuple):
    """What the agent that a call began asks the person: asked here as well as in its own chat."""

    request: ApprovalRequest
    tell: Callable[[Answer], None]
    """Takes the answer that was given here."""


class Spent(NamedTuple):
    """What that agent has just paid: it counts at once, whatever becomes of the call."""

    usd: float


Piece = str | Outcome | Asked | Approval | Spent
"""Live output, the end, a question, the answer that it got anywhere, and costs."""


class Tool(NamedTuple):
    """One thing a model can do."""

    name: str
    description: str
    parameters: dict[str, Any]
    """A JSON schema. Every byte of it is sent with every request."""
    action: Callable[[Arguments, Place], Action]
    """Checks the arguments and resolves every path of the call; raises ToolError."""
    run: Callable[[Arguments, Place], AsyncGenerator[Piece, None]]
    """Takes the same `Place` as `action` did, so that what was decided is what is opened. Close it: a generator that
    is closed or cancelled ends the processes it began."""
    is_program: bool = False
    """Whether it starts a program, in the sandbox where there is one."""
    propose: Callable[[Arguments, Place], str | None] | None = None
    """For a call that is asked about: what it would change, as a diff of the file as it is now; None where that cannot
    be told. `Place.asked` keeps what the file held, and `run` changes no other. May take a while; raises nothing."""
    is_apart: bool = False
    """Whether calls of it that stand beside each other in one answer run side by side."""
