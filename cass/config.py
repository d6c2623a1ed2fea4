"""Settings: what the flags, the environment, the files of the home and the built-in table say together.

    flag > CASS_PROVIDER, CASS_MODEL, CASS_MODE, CASS_MAX_TOKENS > config.json > providers.json > built in

What the files say is checked in `written`; provider, key and model are chosen in `connection`. Keys are never shown.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cass import hooks, models, written
from cass.access import Mode
from cass.connection import Connection as Connection
from cass.connection import Options as Options
from cass.connection import choose_model, connect, whole_number
from cass.errors import ConfigError, MissingKey
from cass.home import Home
from cass.hooks import Hook
from cass.instructions import Instructions
from cass.instructions import instructions as instructions
from cass.known import ASSUMED_CONTEXT
from cass.models import Facts
from cass.rules import Rules, vain
from cass.written import LAYOUTS, Written
from cass.written import secret_names as secret_names
from cass.written import stored_keys as stored_keys

MAX_TOKENS = 8_192
MAX_TOOL_OUTPUT = 100_000
SHOWN_TOOL_OUTPUT = 2_000
MAX_AGENTS = 4

DEMO_NOTICE = (
    "demo: offline, no language model is answering; set FIREWORKS_API_KEY (or another provider's key), "
    'or run: cass setup, which names a "default_provider" in {config}'
)


class Settings(NamedTuple):
    """Everything a run goes by."""

    connection: Connection
    model: str
    mode: Mode = Mode.READ_ONLY
    rules: Rules = Rules()
    max_tokens: int = MAX_TOKENS
    """Output tokens of one answer, reasoning included."""
    max_tokens_said: bool = False
    """Whether the person chose `max_tokens`; if not, it follows the model."""
    max_turns: int | None = None
    """Requests of one turn; None: no limit."""
    max_cost: float | None = None
    """USD that the requests of this run may come to; None: no limit."""
    max_agents: int = MAX_AGENTS
    """Agents of one chat that work at once; 0: there are none."""
    max_tool_output: int = MAX_TOOL_OUTPUT
    """Characters of one tool result that the model gets."""
    context_limit: int = ASSUMED_CONTEXT
    """Tokens that the model takes, input and output together."""
    context_assumed: bool = True
    """Whether `context_limit` is a guess, because nothing is known about the model."""
    supports_tools: bool = True
    facts: Facts = Facts()
    """What is known about the model."""
    effort: str | None = None
    show_reasoning: bool = False
    ui_tool_result_limit: int = SHOWN_TOOL_OUTPUT
    """Characters of one tool result that a screen shows."""
    layout: str | None = None
    shell_env: tuple[str, ...] = ()
    """Which variables tools are given besides, as of `cass.environment`."""
    sandbox: bool | None = None
    """Whether commands run in the sandbox; None: in workspace-edit mode, where it works."""
    net: bool = False
    """Whether they have the network there."""
    sandbox_write: tuple[str, ...] = ()
    """Directories that they may write to there besides, absolute or from ``~/`` on."""
    fetch_private: tuple[str, ...] = ()
    """Hosts and networks that are not on the internet and may be fetched from."""
    hooks: tuple[Hook, ...] = ()
    tools: tuple[str, ...] | None = None
    """The only tools that the model is offered, as of `Options`; None: all that the mode has."""
    notices: tuple[str, ...] = ()
    instructions: Instructions | None = None
    """What the person and the project tell the model, where they were read already."""


def load(home: Home, options: Options, environ: Mapping[str, str], *, probe: bool = True) -> Settings:
    """Settings of a run. Raises ConfigError. `probe`: whether local servers are asked, for 100 ms at most."""
    files = Written.read(home, options.config)
    config = files.config
    connection = connect(files, options, environ, probe)
    model, length = choose_model(files, options, environ, connection, probe)
    said = options.max_tokens or whole_number(environ, "CASS_MAX_TOKENS") or config.get("max_tokens")
    settings = Settings(
        connection=connection,
        model=model,
        mode=_mode(options, environ, config),
        rules=_rules(config),
        max_tokens=said or MAX_TOKENS,
        max_tokens_said=said is not None,
        max_turns=options.max_turns or config.get("max_turns"),
        max_cost=options.max_cost or config.get("max_cost"),
        max_agents=config.get("max_agents", MAX_AGENTS),
        max_tool_output=options.max_tool_output or config.get("model_tool_result_limit", MAX_TOOL_OUTPUT),
        show_reasoning=config.get("show_reasoning", False),
        ui_tool_result_limit=config.get("ui_tool_result_limit", SHOWN_TOOL_OUTPUT),
        layout=_layout(options.layout or environ.get("CASS_LAYOUT")) or config.get("layout"),
        sandbox=_first(options.sandbox, config.get("sandbox")),
        net=_first(options.net, config.get("net")) or False,
        sandbox_write=tuple(config.get("sandbox_write", ())),
        shell_env=tuple(config.get("shell_env", ())),
        fetch_private=tuple(config.get("fetch_private", ())),
        hooks=hooks.of(config.get("hooks", {})),
        tools=_tools(options.tools if options.tools is not None else config.get("tools")),
        notices=(*files.notices, *_vain(files), *_remarks(files, connection)),
    )
    return _for_model(settings, files.models, length, options.effort or config.get("default_reasoning_effort"))


def with_instructions(settings: Settings, home: Home, root: Path) -> Settings:
    """The same with the instructions for the workspace `root`, so that a chat that is begun at once reads them once."""
    return settings._replace(instructions=instructions(home, root))


def with_model(settings: Settings, home: Home, model: str, effort: str | None = None) -> Settings:
    """The same connection with another model, or another effort. Raises ConfigError."""
    mine = written.models(home, [])
    return _for_model(settings._replace(model=model), mine, None, effort or settings.effort)


def _for_model(settings: Settings, mine: list[dict[str, Any]], length: int | None, effort: str | None) -> Settings:
    """`settings` with what is known about their model. `length`: of its context, as its server said."""
    connection = settings.connection
    facts = models.find(connection.provider, settings.model, connection.base_url, mine)
    limit = facts.context or length or ASSUMED_CONTEXT
    # Unless it is said otherwise an answer may take a quarter of a small context, and what the model can put out.
    longest = min(MAX_TOKENS, limit // 4, facts.output or MAX_TOKENS)
    effort = effort or facts.effort
    return settings._replace(
        max_tokens=settings.max_tokens if settings.max_tokens_said else longest,
        context_limit=limit,
        context_assumed=facts.is_elsewhere or not (facts.context or length),
        facts=facts,
        supports_tools=facts.tools is not False,
        effort="none" if effort == "off" else effort or None,
    )


def require_key(settings: Settings) -> None:
    """Raise MissingKey where the provider's key is not set."""
    connection = settings.connection
    if connection.api_key is None and connection.api_key_env is not None:
        raise MissingKey(f"set {connection.api_key_env}: it holds the API key of {connection.provider}")


def _mode(options: Options, environ: Mapping[str, str], config: Mapping[str, Any]) -> Mode:
    given = options.mode or environ.get("CASS_MODE")
    if given and given not in tuple(Mode):
        where = "the access mode" if options.mode else "CASS_MODE"
        raise ConfigError(f"{where} is {given!r}: expected one of {', '.join(Mode)}")
    return Mode(given or config.get("default_access_mode", Mode.READ_ONLY))


def _first(*said: bool | None) -> bool | None:
    return next((one for one in said if one is not None), None)


def _tools(said: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if said is None else tuple(said)


def _layout(given: str | None) -> str | None:
    if given and given not in LAYOUTS:
        raise ConfigError(f"the layout is {given!r}: expected one of {', '.join(LAYOUTS)}")
    return given


def _rules(config: Mapping[str, Any]) -> Rules:
    allow, ask, deny = (tuple(config.get(key, ())) for key in ("allow", "ask", "deny"))
    return Rules(allow, ask, deny, config.get("confirm_destructive_operations", False))


def _vain(files: Written) -> list[str]:
    """What is wrong with rules that can never match."""
    return [f"{files.config_path}: {text}" for text in vain(_rules(files.config))]


def _remarks(files: Written, connection: Connection) -> list[str]:
    """What the person must know about the connection."""
    if connection.kind != "demo" or connection.script:
        return []
    return [DEMO_NOTICE.format(config=files.config_path)]
