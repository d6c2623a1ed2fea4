"""Extending: what docs/extending.md shows works as it stands."""

import re
from pathlib import Path

import pytest

from cass import skills
from cass.composer import expansion

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
