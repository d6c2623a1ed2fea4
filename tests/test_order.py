"""The house: every module has one place in a fixed order and imports only what stands before it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ORDER = """
    errors pattern flags web web.url web.hosts hunks home jsonl elder preferences visible announce color amounts values
    records ends headline compound rules warning access ignore walk names images blobs snapshots attachments query
    search inbox itself extras presence lineage catalogue tail chat callers decisions known instructions frontmatter
    trust skills project environment hooks written edition connection gguf models bill config variables
    welcome
    prompt budget gallery context blocks markdown commands templates
    providers.sse providers.veil providers.failures providers.shape providers.address providers.ids providers.effort
    providers.utterance providers.plain providers.answer providers.openai_compatible providers.openai_responses
    providers.anthropic providers.gemini providers.demo providers.http
    providers.ring providers.llama providers.local providers.roster providers
    web.charset web.page web.visit
    tools.paths tools.arguments tools.deadman tools.hidden tools.guards tools.sandbox tools.cell tools.child
    tools.diff tools.strides tools.nearest tools.tool tools.host tools.aside
    tools.ls tools.read tools.grep tools.write tools.edit tools.hook tools.shell tools.fetch tools.own tools
    mcp.servers mcp.names mcp.words mcp.pipe mcp.host mcp.link mcp.manage mcp
    toolbox brought hooked desk tries summary abreast progress relay calls loop briefing questions opening heir branch
    restore turn standing outlook waiting agent agents superior session
    intake door worker send joining exchange listing stats passages
    worktree tasks ledger
    export.redaction export.document export.plain export.html export
    viewer.attention viewer.wrapping viewer.code viewer.table viewer.prose viewer.look viewer.changes viewer.calls
    viewer.render viewer.since viewer.reading viewer.page viewer.surface viewer.watch viewer.screen viewer.view viewer
    composer.history composer.draft composer.pastes composer.rows composer.question composer.frames composer.foreground
    composer.attention composer.git composer.panes composer.transcript composer.helper composer.clipboard
    composer.mentions composer.seat composer.subcommand composer.agents composer.branching composer.words
    composer.employer composer.expansion composer.footer composer.tree composer.paths composer.completion
    composer.models composer.keys composer.terminal composer.recall composer.folded composer.console composer.picker
    composer.pager composer.errands composer.choice composer.slash composer.asking composer.keyboard composer.compose
    composer
    acp.before acp.lines acp.updates acp.room acp.server acp
    setup launch program schema report oneshot branching prune dialogue verdict review
    batch gauge fleet scheduler
    synopsis completions.chats completions.bash completions.zsh completions.fish completions manual
    check.finding check.disk check.machine check.provider check.extensions check.verdicts check subcommands cli
""".split()

LATE = {"cli", "program", "subcommands", "providers", "tools"}
"""They hold the tables that name what is loaded only when it is used; nobody else imports inside a function."""

OUTSIDERS = {
    "acp": {"acp.room", "acp.server", "acp.updates"},
    "anyio": {"mcp.pipe"},
    "click": {"cli", "dialogue", "program", "subcommands", "synopsis"},
    "distributed": {"scheduler"},
    "httpx": {"providers.http", "web.visit"},
    "httpx2": {"mcp.host"},
    "jsonschema": {"schema"},
    "justhtml": {"web.page"},
    "keyring": {"providers.ring"},
    "mcp": {"mcp.host", "mcp.pipe"},
    "mcp_types": {"mcp.host", "mcp.pipe"},
    "markdown_it": {"export.html", "markdown", "viewer.prose"},
    "prompt_toolkit": {
        *("composer.compose", "composer.console", "composer.folded", "composer.keyboard", "composer.keys"),
        *("composer.pager", "composer.picker", "composer.recall", "composer.terminal"),
    },
    "pygments": {"export.html", "viewer.code"},
    "rich": {
        "gauge",
        *(f"viewer.{name}" for name in ("calls", "changes", "code", "look", "page", "prose", "render", "surface")),
        *("viewer.table", "viewer.wrapping"),
    },
    "watchfiles": {"viewer.watch"},
    "xllamacpp": {"providers.llama"},
}
"""The heavy packages, and who may import each at all."""

SOURCES = {
    ".".join(path.relative_to(ROOT / "cass").with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "cass").rglob("*.py"))
    if path.parent.name != "cass" or path.name != "__init__.py"
}


def imports(name: str) -> Iterator[tuple[str, bool]]:
    """Dotted names that a module imports, by statement or `import_module`; and whether it does so in a function."""
    tree = ast.parse(SOURCES[name].read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    inside = {id(node) for function in ast.walk(tree) if isinstance(function, functions) for node in ast.walk(function)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module=module, names=names, level=0):
                found = [f"{module}.{alias.name}" for alias in names]
            case ast.ImportFrom():
                found = ["a relative import"]
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(text)), *_]):
                found = [text]
            case _:
                continue
        yield from ((text, id(node) in inside) for text in found)


def own(imported: str) -> str | None:
    """The module of ours that an imported name means, as `ORDER` writes it; None for others' packages."""
    if imported != "cass" and not imported.startswith("cass."):
        return None
    inner = imported.removeprefix("cass.")
    while inner and inner not in SOURCES:  # a name in a module, not a module
        inner = inner.rpartition(".")[0]
    return inner or None


def test_every_module_has_its_place_in_the_order():
    assert sorted(ORDER) == sorted(SOURCES)


@pytest.mark.parametrize("name", SOURCES)
def test_a_module_imports_only_what_stands_before_it(name):
    place = ORDER.index(name)
    after = {module for imported, _ in imports(name) if (module := own(imported)) and ORDER.index(module) >= place}
    assert after == set()


@pytest.mark.parametrize("name", sorted(set(SOURCES) - LATE))
def test_imports_stand_at_the_top_of_a_module(name):
    assert [imported for imported, late in imports(name) if late] == []


@pytest.mark.parametrize("name", SOURCES)
def test_a_heavy_package_is_imported_only_where_it_belongs(name):
    packages = {imported.partition(".")[0] for imported, _ in imports(name)}
    assert {package for package in packages if name not in OUTSIDERS.get(package, {name})} == set()


@pytest.mark.parametrize("name", SOURCES)
def test_a_module_imports_by_whole_names(name):
    assert "a relative import" not in [imported for imported, _ in imports(name)]


@pytest.mark.parametrize("path", sorted((ROOT / "cass").rglob("*.py")), ids=lambda path: path.stem)
def test_a_module_says_what_it_is_and_stays_short(path):
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "no docstring that names its noun"
    assert text.count("\n") <= 500, "is there a second noun in it?"
