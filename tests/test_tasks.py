import json
from pathlib import Path

import pytest

from cass import tasks
from cass.errors import UsageError
from cass.tasks import Task

CWD = Path("/work")


def read(*lines, **options):
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return tasks.read(data.encode(), "t.jsonl", CWD, options)


def test_a_line_says_what_differs_from_the_command_line():
    (task,) = read({"prompt": "go", "id": "a", "cwd": "x", "model": "m", "max_turns": 3}, model="n", provider="p")
    assert task == Task("a", "go", CWD / "x", None, {"model": "m", "provider": "p", "max_turns": 3})


def test_images_are_files_from_the_directory_of_the_task_on_and_part_of_what_is_asked():
    (task,) = read({"prompt": "go", "id": "a", "cwd": "x", "attach": ["a.png", "/b.png"]})
    (other,) = read({"prompt": "go", "id": "a"})
    assert task.attach == (CWD / "x" / "a.png", Path("/b.png"))
    assert task.digest != other.digest


def test_empty_lines_are_none():
    assert [task.prompt for task in read("", {"prompt": "a"}, "  ", {"prompt": "b"}, "")] == ["a", "b"]


def test_an_id_is_that_of_what_the_line_says_wherever_it_stands():
    first, second = read({"prompt": "a"}, {"prompt": "b"})
    other, again, twice = read({"prompt": "b"}, {"prompt": "a"}, {"prompt": "a"})
    assert (other.id, again.id) == (second.id, first.id)
    assert twice.id == f"{first.id}-2"


@pytest.mark.parametrize(("said", "name"), [(True, "a"), ("mine", "mine"), (False, None), (None, None)])
def test_a_worktree_has_the_name_of_its_task_or_its_own(said, name):
    assert read({"prompt": "go", "id": "a", "worktree": said})[0].worktree == name


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "t.jsonl:2: not JSON"),
        ("[]", "a task is a JSON object"),
        ({"id": "a"}, 'no "prompt"'),
        ({"prompt": " "}, 'no "prompt"'),
        ({"prompt": 3}, '"prompt" is to be a text'),
        ({"prompt": "a", "modell": "m"}, 'unknown key "modell"'),
        ({"prompt": "a", "mode": "wild"}, "read-only, workspace-edit, full-access"),
        ({"prompt": "a", "max_turns": True}, '"max_turns" is to be a whole number'),
        ({"prompt": "a", "max_cost": -1}, '"max_cost" is to be more than 0'),
        ({"prompt": "a", "id": "a b"}, "an id is 1 to 40"),
        ({"prompt": "a", "id": "first"}, "another task has the id first"),
        ({"prompt": "a", "attach": "a.png"}, '"attach" is to be a list of names'),
        ({"prompt": "a", "attach": [1]}, '"attach" is to be a list of names'),
        ({"prompt": "a", "worktree": 1}, '"worktree" is to be true, or a name'),
    ],
)
def test_a_wrong_line_is_named_with_what_was_expected(line, words):
    with pytest.raises(UsageError) as e:
        read({"prompt": "ok", "id": "first"}, line)
    assert words in str(e.value)


def test_a_file_without_tasks_says_what_a_line_is():
    with pytest.raises(UsageError, match="holds no task"):
        read("")


def test_a_file_is_known_by_its_path_and_standard_input_by_what_it_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tasks.key(Path("a b.jsonl"), b"1") == tasks.key(tmp_path / "a b.jsonl", b"2")
    assert tasks.key(None, b"1") != tasks.key(None, b"2")


def test_an_id_stands_for_one_prompt():
    (task,) = read({"prompt": "a", "id": "x"})
    tasks.same([task], {"x": task.digest})
    with pytest.raises(UsageError, match="the task x was run with another prompt"):
        tasks.same([task], {"x": "0"})
