"""The walk finds the files that git finds, and follows nothing."""

import os
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cass.ignore import HEAVY, Patterns
from cass.walk import DEPTH_LIMIT, Walk, descend


def walked(top: Path, **options) -> list[str]:
    return [path + name for _, path, names in Walk(str(top.resolve()), **options) for name in names]


def by_git(top: Path) -> list[str]:
    command = ["git", "-C", str(top), "ls-files", "-z", "-co", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, check=True).stdout.split(b"\0")[:-1]
    return sorted(os.fsdecode(name) for name in names if not os.path.islink(os.path.join(os.fsencode(top), name)))


def lay(top: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return top


@pytest.fixture(autouse=True)
def _no_excludes_of_mine(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def test_an_excluded_parent_and_nested_rules_are_read_as_git_reads_them(repository):  # C-04
    lay(
        repository,
        {
            ".gitignore": "build\n!keep.log\nlogs/*\n!logs/keep.log\n**/vendor/\n",
            "a/.gitignore": "!vendor\n",
            **dict.fromkeys("build/keep.log logs/keep.log logs/x.log a/vendor/f.txt b/vendor/f.txt".split(), ""),
        },
    )
    assert sorted(walked(repository)) == by_git(repository)
    assert set(walked(repository)) == {".gitignore", "a/.gitignore", "logs/keep.log", "a/vendor/f.txt"}


PATTERNS = [
    *(
        "*.o",
        "/a",
        "a/",
        "a/*",
        "/*/b",
        "**/b",
        "a/**",
        "a/**/c",
        "a**/b",
        "a*/b",
        "*",
        "?",
        "??",
        "a?c",
        "[ab]",
        "[!a]*",
    ),
    *(
        "[a-c]",
        "[]-]",
        "[^b]",
        "[[:alpha:]]",
        "[[:upper:]b]",
        "[[:nope:]]",
        "[a",
        "[a-",
        r"\a",
        r"\*",
        "a\\",
        r"a\ ",
        "a  ",
    ),
    *(
        "#a",
        r"\#a",
        "!a",
        r"\!a",
        "//a",
        "/",
        "!",
        "a//b",
        "*a*",
        "**",
        "/**",
        "**/",
        "a/b",
        "./a",
        "*.*",
        "a\tb",
        "\u00e9",
        "?\u00e9",
    ),
    *(
        "*/",
        "*/*",
        "**/*",
        "a/b/",
        "abc/**/",
        "a***b",
        "a/***/b",
        "[a/]b",
        "a[/]b",
        "[\\]]",
        "[b-\\d]",
        "foo**/bar",
        "*/**/b",
    ),
]
NAMES = [
    "a",
    "b",
    "c",
    "abc",
    "a b",
    "a ",
    "#a",
    "!a",
    "*",
    "é",
    "aé",
    "[a",
    "]",
    "-",
    "x.o",
    "B",
    "foo",
    "bar",
    "a\\",
    "d",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_means_what_it_means_to_git(repository, pattern):
    names = [name for name in NAMES if name != "*"]
    lay(repository, dict.fromkeys([f"{name}.f" for name in names] + [f"d/{name}" for name in names], ""))
    lay(
        repository,
        {"a/b/c": "", "a/b/a": "", "a/c": "", "a/x/b": "", "b/a/b": "", "abc/b": "", "foo/x/bar": "", "foobar": ""},
    )
    (repository / ".gitignore").write_text(pattern + "\n")
    assert sorted(walked(repository)) == by_git(repository)


@pytest.mark.parametrize(
    "text", ["a\r\nb\r\n", "\ufeffa\n", "a", "\n\n#\na\n\n", "*\n!*/\n!b\n", "a\n!a\na\n", "/a\n!/a/b\n"]
)
def test_an_ignore_file_is_split_into_lines_as_git_does(repository, text):
    lay(repository, {"a": "", "b": "", "c/a": "", "c/b": "", "d/a/b": "", "d/a/c": "", ".gitignore": ""})
    (repository / ".gitignore").write_bytes(text.encode())
    assert sorted(walked(repository)) == by_git(repository)


pattern_texts = st.lists(
    st.sampled_from(["a", "b", "c", "/", "*", "**", "?", "!", "[ab]", "[!a]", "\\", " "]), min_size=1, max_size=6
) | st.sampled_from([["*", "b"], ["a", "/", "*"], ["!", "b", "/", "c"], ["*", "*", "/", "a", "/", "b"], ["/", "b"]])
ignore_files = st.lists(pattern_texts.map("".join), max_size=4).map("\n".join)
folders = st.sampled_from(["", "a/", "b/", "a/b/", "a/a/", "b/c/a/"])
excludes = st.sampled_from([".git/info/exclude", "global"])


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(folders, ignore_files, max_size=3),
    st.sets(st.tuples(folders, st.sampled_from("a b c ab ba".split()))),
    st.dictionaries(excludes, ignore_files, max_size=1),
)
def test_any_tree_of_ignore_files_gives_the_files_of_git(tmp_path_factory, ignores, files, excludes):
    top = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    of_mine = Path(os.environ["HOME"], ".config", "git", "ignore")
    lay(top, {name: text for name, text in excludes.items() if name != "global"})
    lay(of_mine.parent, {of_mine.name: excludes.get("global", "")})
    for folder, name in sorted(files):
        if not (top / folder / name).is_dir() and not any(p.is_file() for p in (top / folder / name).parents):
            lay(top, {folder + name: ""})
    for folder, text in ignores.items():
        if not any(p.is_file() for p in (top / folder / "x").parents):
            lay(top, {f"{folder}.gitignore": text})
    assert sorted(walked(top)) == by_git(top)


def test_excludes_of_the_repository_and_of_the_person_hold(repository, monkeypatch):
    lay(
        repository,
        {".git/info/exclude": "secret\n/a/x\n", "secret": "", "a/x": "", "b/a/x": "", "swap": "", "kept": ""},
    )
    excludes = lay(Path(os.environ["HOME"]), {"mine": "swap\n"}) / "mine"
    lay(
        Path(os.environ["HOME"]),
        {".gitconfig": f"[user]\n\tname = x\n[core]\n\teditor = vi\n\texcludesFile = {excludes}\n"},
    )
    assert walked(repository) == ["kept", "b/a/x"]
    assert sorted(walked(repository)) == by_git(repository)


@pytest.mark.parametrize(
    "of_the_repository",
    [
        {".git/config": "[core]\n\texcludesFile = {elsewhere}/exclude\n"},
        {".git/info/exclude": "-> {elsewhere}/exclude"},
        {".git/info": "-> {elsewhere}"},
        {".gitignore": "-> {elsewhere}/exclude"},
        {".ignore": "-> {elsewhere}/exclude"},
    ],
)
def test_a_repository_cannot_make_the_walk_read_a_file_elsewhere(tmp_path, of_the_repository):
    elsewhere = lay(tmp_path / "elsewhere", {"exclude": "secret\n"})
    lay(tmp_path / "top", {".git/HEAD": "", "a": "", "secret": ""})
    for name, content in of_the_repository.items():
        path, text = tmp_path / "top" / name, content.format(elsewhere=elsewhere)
        path.parent.mkdir(exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        else:
            path.write_text(text)
    assert walked(tmp_path / "top") == ["a", "secret"]


def test_the_default_place_of_global_excludes_is_read(repository):
    lay(Path(os.environ["HOME"]), {".config/git/ignore": "swap\n"})
    lay(repository, {"swap": "", "kept": ""})
    assert walked(repository) == by_git(repository) == ["kept"]


def test_a_folder_below_the_top_of_a_repository_is_walked_with_the_rules_above_it(repository):
    lay(
        repository, {".gitignore": "*.log\n/a/b/tmp\n", "a/b/x.log": "", "a/b/tmp": "", "a/b/c/tmp": "", "a/b/kept": ""}
    )
    assert walked(repository / "a" / "b") == ["kept", "c/tmp"]


def test_a_worktree_uses_the_excludes_of_its_repository(repository):
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(repository / "tree")], check=True)
    lay(repository, {".git/info/exclude": "no\n", "tree/no": "", "tree/yes": ""})
    assert walked(repository / "tree") == ["yes"]


def test_a_repository_inside_another_has_rules_of_its_own(repository):
    lay(
        repository,
        {".gitignore": "*.log\n", "x.log": "", "inner/x.log": "", "inner/.gitignore": "*.tmp\n", "inner/x.tmp": ""},
    )
    subprocess.run(["git", "init", "-q", str(repository / "inner")], check=True)
    assert walked(repository) == [".gitignore", "inner/.gitignore", "inner/x.log"]


def test_a_dot_ignore_file_is_stronger_than_git(repository):
    lay(
        repository,
        {".gitignore": "*.log\nb\n", ".ignore": "!keep.log\na\n", "a": "", "b": "", "x.log": "", "d/keep.log": ""},
    )
    assert walked(repository) == [".gitignore", ".ignore", "d/keep.log"]


def test_ignore_files_hold_without_a_repository(tmp_path):
    lay(tmp_path, {".gitignore": "a\n", "a": "", "b": ""})
    assert walked(tmp_path) == [".gitignore", "b"]


def test_heavy_directories_are_passed_over_and_named(tmp_path):
    lay(tmp_path, {"src/a": "", "node_modules/x/b": "", "src/target/c": "", "vendor": "a file", ".git/config": ""})
    walk = Walk(str(tmp_path))
    assert [path + name for _, path, names in walk for name in names] == ["vendor", "src/a"]
    assert walk.heavy == {"node_modules", "target"}


def test_a_heavy_directory_is_walked_when_named_or_when_an_ignore_file_says_so(tmp_path):
    lay(tmp_path, {"vendor/a": "", "target/b": "", ".ignore": "!vendor\n"})
    assert walked(tmp_path) == [".ignore", "vendor/a"]
    assert walked(tmp_path / "target") == ["b"]


def test_every_heavy_name_is_a_pattern():
    for name in HEAVY:
        assert Patterns(f"{name}/\n".encode(), 0).verdict(b"/", name.replace("*", "x").encode(), True) is True


def test_links_pipes_and_sockets_are_neither_followed_nor_named(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    lay(tmp_path, {"out/secret": "", "in/plain": ""})
    (inside / "folder").symlink_to(outside)
    (inside / "file").symlink_to(outside / "secret")
    (inside / "loop").symlink_to(inside)
    os.mkfifo(inside / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(inside)  # a socket's path is limited to 107 bytes
            made.bind("socket")
        finally:
            os.chdir(here)
            os.close(here)
    assert walked(inside) == ["plain"]


def test_a_closed_directory_is_not_entered_under_any_name(tmp_path):
    lay(tmp_path, {"home/secret": "", "x/y": ""})
    status = (tmp_path / "home").stat()
    assert walked(tmp_path, closed={(status.st_dev, status.st_ino)}) == ["x/y"]


def test_denied_files_and_directories_are_passed_over_and_counted(tmp_path):
    lay(tmp_path, {"a/secrets/x": "", "a/b": "", "secret": "", "c/not": ""})
    walk = Walk(str(tmp_path), denied=lambda path: path in (f"{tmp_path}/a/secrets", f"{tmp_path}/c/not"))
    assert [path + name for _, path, names in walk for name in names] == ["secret", "a/b"]
    assert walk.denied == 2


def test_names_that_are_not_utf_8_are_walked(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("")
    (tmp_path / os.fsdecode(b"\xff.log")).write_text("")
    lay(tmp_path, {".gitignore": "*.log\n"})
    assert walked(tmp_path) == [".gitignore", os.fsdecode(b"caf\xe9")]


def test_a_tree_too_deep_is_left_at_the_limit(tmp_path):
    top = lay(tmp_path / "top", {"d/x": ""})
    at = os.open(top / "d", os.O_RDONLY)
    for _ in range(DEPTH_LIMIT + 5):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    walk = Walk(str(top))
    assert sum(1 for _ in walk) == DEPTH_LIMIT
    assert walk.unreadable == 1


def test_a_walk_left_early_closes_what_it_opened(tmp_path):
    lay(tmp_path, {"a/b/c/d": ""})
    before = len(os.listdir("/dev/fd"))
    for _, _, names in Walk(str(tmp_path)):
        if names:
            break
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("path", ["link/x", "link", "dir/link"])
def test_descending_follows_no_link(tmp_path, path):
    lay(tmp_path, {"real/x": "", "dir/y": ""})
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dir" / "link").symlink_to("y")
    with pytest.raises(OSError, match=r"directory|symbolic"):
        descend(f"{tmp_path.resolve()}/{path}", os.O_RDONLY)
