"""The desk: what a turn works with."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cass import context, gallery, jsonl
from cass.access import Mode
from cass.bill import Bill
from cass.config import Settings
from cass.context import Request
from cass.decisions import Answer
from cass.gallery import Refused
from cass.hooked import Hooked, Verdict
from cass.providers import Provider
from cass.records import Attachment, Record, Status, User
from cass.rules import Rules
from cass.snapshots import Call, Keep, keep_nothing
from cass.toolbox import Toolbox
from cass.tools.paths import Place


@dataclass
class Desk:
    """Its owner keeps `records` up to date and answers what is asked."""

    records: list[Record]
    provider: Provider
    place: Place
    model: str
    provider_name: str
    mode: Mode
    """The mode now; a turn never uses a wider one than it began with."""
    rules: Rules
    effort: str | None
    max_tokens: int
    max_turns: int | None
    max_tool_output: int
    context_limit: int
    """Tokens, as the provider counts them."""
    supports_tools: bool
    answer: Callable[[str], Awaitable[Answer]]
    """Waits for the person's answer to the request with this id."""
    is_steered: Callable[[], bool]
    """Whether the person wants to be heard before the turn goes on."""
    steering: Callable[[], User | None]
    """The next message of those; handed out once, and only when it is written down at once."""
    toolbox: Toolbox = field(default_factory=Toolbox)
    hooked: Hooked = field(default_factory=Hooked)
    turn: str = ""
    """Id of the user message that is being answered."""
    keeping: Callable[[Call], Keep] = lambda _: keep_nothing
    """Who keeps what a call is about to change."""
    ceiling: Callable[[], Mode] = lambda: Mode.FULL_ACCESS
    """What no turn exceeds, whatever `mode` says."""
    sandbox: bool | None = None
    """Whether commands are sandboxed; None: as the mode has it."""
    context_assumed: bool = False
    """Whether `context_limit` is a guess."""
    bill: Bill = field(default_factory=Bill)
    density: float = 1.0
    """How many tokens the provider counts for one that is estimated, as far as it has said."""
    begun: bool = False
    """Whether the hooks of the chat's start were called."""
    told_full: bool = False
    """Whether the person was told that the context fills up."""
    secrets: tuple[str, ...] = ()
    """API keys, and what tools are not given: no tool may put them out."""
    refused: Refused = lambda _: ""
    """Why the model in use is not shown an image."""
    image: Callable[[Attachment], bytes | None] = lambda _: None
    """Reads an image; None where it is not kept any more."""

    def use(self, settings: Settings, before: Settings) -> None:
        """Go on with the model of `settings`, in place of that of `before`."""
        self.provider_name, self.model, self.effort = settings.connection.provider, settings.model, settings.effort
        self.context_assumed, self.bill.facts = settings.context_assumed, settings.facts
        self.supports_tools = settings.supports_tools
        if _sizes(before) != _sizes(settings):  # else what the requests taught of this model holds on
            self.context_limit, self.max_tokens = settings.context_limit, settings.max_tokens
            self.density, self.told_full = 1.0, False

    async def hook(self, event: str, place: Place, tool: str = "", **told: Any) -> Verdict:
        """Call the person's hooks for `event`, which get what is `told`."""
        now = {"mode": str(self.mode), "provider": self.provider_name, "model": self.model}
        return await self.hooked.call(event, place, tool, **now, **told)

    def request(self, records: Sequence[Record], mode: Mode) -> Request:
        """What `records` lead to, with the tools of `mode`."""
        request = context.build(
            records,
            tools=self.toolbox.schemas(mode, self.rules) if self.supports_tools else (),
            model=self.model,
            max_tokens=self.max_tokens,
            effort=self.effort,
            limit_tokens=int(self.context_limit / self.density),
            max_tool_output=self.max_tool_output,
            refused=self.refused,
        )
        hung = gallery.hang(request.messages, self.image)
        return request._replace(messages=hung.messages, images=hung.images, unseen=request.unseen + hung.unseen)

    def used(self) -> int | None:
        """Tokens of the context in use, as far as it was reported, and estimated."""
        tools = self.toolbox.schemas(self.mode, self.rules) if self.supports_tools else ()
        return context.used(self.records, self.max_tool_output, tools)

    def status(self, state: str, detail: str | None = None) -> Status:
        return Status(
            state=state,
            mode=self.mode,
            provider=self.provider_name,
            model=self.model,
            created_at=jsonl.now(),
            used=self.used(),
            limit=self.context_limit,
            assumed=self.context_assumed,
            cost=context.spent(self.records),
            detail=detail,
            turn=self.turn,
        )


def _sizes(settings: Settings) -> tuple[str, str, int, int]:
    """The model, and how long its requests and answers may be."""
    return settings.connection.provider, settings.model, settings.context_limit, settings.max_tokens
