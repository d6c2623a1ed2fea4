"""Extras: each is named as pyproject.toml has it, and added where cass was installed by whatever installed it."""

import tomllib
from pathlib import Path

import pytest

from cass import extras

ROOT = Path(__file__).parent.parent


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {name: lines for name, lines in project["optional-dependencies"].items() if name not in ("test", "dev")}
    assert named == {name: [package] for name, package in extras.PACKAGES.items()}


@pytest.mark.parametrize(
    ("left", "command"),
    [
        ("pipx_metadata.json", "pipx inject cassady 'mcp>=2.0'"),
        ("uv-receipt.toml", "uv pip install --python {home}/bin/python 'mcp>=2.0'"),
        ("pyvenv.cfg", "{home}/bin/python -m pip install 'mcp>=2.0'"),
    ],
)
def test_a_package_is_added_by_whatever_made_the_environment(tmp_path, left, command):
    home = tmp_path / "cassady"
    home.mkdir()
    (home / left).touch()
    assert extras.adding("mcp", str(home)) == command.format(home=home)


def test_no_page_speaks_of_a_package_index_that_does_not_have_cass():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "cass").rglob("*.py")]
    assert [str(page) for page in pages if "install 'cassady" in page.read_text()] == []
