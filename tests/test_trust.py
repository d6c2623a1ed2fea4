"""Trust: what a project's files may do before and after the person has looked at them."""

import json
import os
import stat

import pytest

from cass import opening, project, trust
from cass.config import Connection, Settings
from cass.errors import CassError, ConfigError
from cass.project import Project
from cass.rules import Rules

DENYING = b'{"deny": ["shell(git push*)"]}'


@pytest.fixture
def root(home, workspace):
    """A workspace whose project configures cass."""
    home.make()
    (workspace / ".cass").mkdir()
    (workspace / ".cass" / "config.json").write_bytes(DENYING)
    return workspace


def give(root, home):
    trust.give(trust.standing(root, home), home)


def test_nothing_there_is_nothing_said(home, workspace):
    assert project.load(workspace, home) == Project()


def test_a_project_is_not_used_before_it_is_trusted_and_that_is_said(home, root):
    found = project.load(root, home)
    assert found.deny == ()
    assert found.notices == (f"{root}: .cass/config.json: not used, nobody trusted it: cass trust",)


def test_a_trusted_project_narrows_and_nothing_is_said(home, root):
    give(root, home)
    assert project.load(root, home) == Project(deny=("shell(git push*)",))
    settings = opening.of_project(Settings(Connection("demo", "demo"), "demo", rules=Rules(deny=("read",))), home, root)
    assert settings.rules == Rules(deny=("read", "shell(git push*)"))


@pytest.mark.parametrize("change", ["content", "new file", "server"])
def test_what_changed_since_is_not_used_until_it_is_trusted_again(home, root, change):
    give(root, home)
    if change == "content":
        (root / ".cass" / "config.json").write_text("{}")
    elif change == "new file":
        (root / ".cass" / "skills").mkdir()
        (root / ".cass" / "skills" / "a.md").write_text("do")
    else:
        (root / ".mcp.json").write_text("{}")
    (remark,) = project.load(root, home).notices
    assert "changed since you trusted it" in remark
    assert (project.load(root, home).deny == ()) == (change == "content")
    give(root, home)
    assert project.load(root, home).notices == ()


def test_only_the_very_bytes_that_were_seen_are_read(home, root):
    give(root, home)
    assert trust.read(root, ".cass/config.json", home) == DENYING
    (root / ".cass" / "config.json").write_bytes(DENYING + b" ")
    assert trust.read(root, ".cass/config.json", home) is None
    assert trust.read(root, ".mcp.json", home) is None


def test_a_file_seen_before_it_was_changed_is_not_trusted_by_that(home, root):
    seen = trust.standing(root, home)
    (root / ".cass" / "config.json").write_text('{"deny": []}')
    trust.give(seen, home)
    assert trust.read(root, ".cass/config.json", home) is None


def test_a_directory_where_a_trusted_file_was_is_no_configuration(home, root):
    trust.give(trust.standing(root, home), home)
    (root / ".cass/config.json").unlink()
    (root / ".cass/config.json").mkdir()
    assert project.load(root, home).deny == ()


def test_links_pipes_and_endless_files_are_no_configuration(home, root):
    (root / ".cass" / "config.json").unlink()
    (root / ".cass" / "config.json").symlink_to("/etc/passwd")
    os.mkfifo(root / ".mcp.json")
    os.mkfifo(root / ".cass" / "pipe")
    (root / ".cass" / "link").symlink_to("/")
    assert trust.standing(root, home).files == {}


def test_too_much_is_refused_as_a_whole(home, root):
    (root / ".cass" / "big").write_bytes(b"x" * (trust.BYTES + 1))
    with pytest.raises(CassError, match="4 MiB of configuration"):
        trust.standing(root, home)
    assert "it is not used" in project.load(root, home).notices[0]


def test_a_directory_below_the_top_of_a_repository_finds_its_project(home, root):
    below = root / "src" / "a"
    below.mkdir(parents=True)
    assert trust.find(below, home) is None
    (root / ".git").mkdir()
    assert trust.find(below, home) == root
    assert trust.find(root, home) == root


def test_the_home_of_cass_is_no_project(home):
    home.root.rename(home.root.with_name(".cass")) if home.root.exists() else None
    own = type(home)(home.root.with_name(".cass"))
    own.make()
    own.config.write_text("{}")
    assert trust.find(own.root.parent, own) is None


def test_trust_is_private_survives_and_is_taken_back(home, root):
    give(root, home)
    assert stat.S_IMODE(home.trust.stat().st_mode) == 0o600
    assert trust.directories(home) == [root]
    assert trust.take(root, home)
    assert not trust.take(root, home)
    assert project.load(root, home).deny == ()


@pytest.mark.parametrize("written", ["{", "[]", '{"directories": []}', '{"directories": {"/a": [1]}}'])
def test_a_wrong_trust_file_trusts_nothing_and_names_itself(home, root, written):
    home.trust.write_text(written)
    with pytest.raises(ConfigError, match=str(home.trust)):
        trust.directories(home)
    assert project.load(root, home) == Project(notices=project.load(root, home).notices)
    assert str(home.trust) in project.load(root, home).notices[0]


# ---- what a project may say -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        *(
            "base_url",
            "api_key",
            "api_key_env",
            "provider",
            "default_provider",
            "model",
            "default_model",
            "allow",
            "fetch_private",
        ),
        *("default_access_mode", "shell_env", "layout", "max_cost", "mcpServers", "hooks", "providers", "editing"),
    ],
)
def test_a_project_sets_nothing_but_what_narrows(key, root):
    found = project.parse(json.dumps({key: ["shell"], "deny": ["shell(x)"]}).encode(), root)
    assert (found.ask, found.deny, found.confirm_destructive) == ((), ("shell(x)",), False)
    assert found.notices == (f"{root}: not for a project to set, and not used: {key}",)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{", "it is not used"),
        ("[]", "expected a JSON object"),
        ('{"deny": "shell"}', "expected a list of rules"),
        ('{"deny": ["fly(x"]}', "no rule: 'fly(x'"),
        ('{"ask": [1]}', "no rule: 1"),
        ('{"deny": ["read(src/*)"]}', "can never match"),
    ],
)
def test_a_wrong_project_file_is_said_and_never_an_error(root, written, said):
    (notice,) = project.parse(written.encode(), root).notices
    assert said in notice


def test_a_project_may_make_destructive_commands_asked_and_cannot_undo_that():
    asks = project.parse(b'{"confirm_destructive_operations": true}', project.Path("p"))
    not_asks = project.parse(b'{"confirm_destructive_operations": false}', project.Path("p"))
    assert asks.narrowed(Rules()).confirm_destructive
    assert not_asks.narrowed(Rules(confirm_destructive=True)).confirm_destructive
