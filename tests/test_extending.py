"""Extending: what docs/extending.md shows works as it stands."""

import re
import shlex
from pathlib import Path

import pytest
from stage import run

from cass import skills
from cass.composer import expansion
from cass.config import Options, load
from cass.mcp import servers
from cass.rules import naming

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "extending.md").read_text()
EXAMPLES = dict(re.findall(r"^`(~/[^`]+)`:\n\n```\w*\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE))


@pytest.fixture
def example(home):
    """Writes an example where it belongs."""

    def write(name):
        path = home.root / name.removeprefix("~/.cass/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(EXAMPLES[name])
        return path

    return write


def test_a_template(example, home, workspace):
    example("~/.cass/prompts/review.md")
    sent = expansion.message('/review app.py kind="missing error check"', home, workspace)
    assert sent == ("Read app.py. List every missing error check in it with its line, the worst first. Change nothing.")
    (row,) = expansion.found(home, workspace)
    assert (row.usage, row.help) == ("/review FILE kind=WHAT", "Review a file for one kind of mistake")


def test_a_skill(example, home, workspace):
    path = example("~/.cass/skills/changelog/SKILL.md")
    (name, line) = list(skills.facts(skills.every(home, workspace), {}).items())[1]
    assert name == "skill changelog"
    assert line.startswith("Writes an entry of the changelog.")
    assert line.endswith(f"({path})")
    assert (expansion.message("/skill:changelog for the parser", home, workspace) or "").endswith("\n\nfor the parser")


def test_servers_and_rules_for_their_tools(example, home, workspace):
    example("~/.cass/mcp.json")
    found = servers.load(home, workspace, {"WIKI_TOKEN": "secret"})
    assert found.notices == ()
    time, files, wiki = found.servers
    assert time.command == ("uvx", "mcp-server-time")
    assert files.command[-1] == "/usr/share/doc"
    assert [tool for tool in ("write_file", "read_text_file") if files.offers(tool)] == ["read_text_file"]
    assert (wiki.headers, wiki.call_s) == ({"Authorization": "Bearer secret"}, 120)
    example("~/.cass/config.json")
    rules = load(home, Options(), {"CASS_PROVIDER": "demo"}).rules
    assert naming(rules.allow, "mcp__time__convert_time")
    assert not naming(rules.allow, "mcp__files__write_file")


@pytest.mark.parametrize("line", re.findall(r"^cass (mcp add .*?)(?: +#.*)?$", TEXT, re.MULTILINE))
def test_a_line_that_adds_a_server(line, home, workspace, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret")
    program, action, *arguments = shlex.split(line)
    done = run("cass", program, action, "--no-test", *arguments)
    assert done.returncode == 0, done.stderr
    assert servers.load(home, workspace, {"MY_TOKEN": "secret"}).servers
    assert "secret" not in home.mcp.read_text() + run("cass", "mcp", "list").stdout
