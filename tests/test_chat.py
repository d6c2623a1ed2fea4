"""The chat file: one writer, nothing lost, nothing cut, and found again among many."""

import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import facts

from cass import catalogue, chat, records
from cass.chat import Chat, LiveFile
from cass.errors import CassError, ChatBroken, Held, NoChat, UsageError
from cass.home import Home
from cass.records import Delta, Meta, Notice, Status, System, ToolOutput, Unknown, User
from cass.tail import Tail

AT = "2026-06-20T14:30:12.345Z"
PATIENT = 60


def user(content: str, id: str = "1", at: str = AT) -> User:
    return User(id=id, content=content, created_at=at)


def contents(files) -> list[str]:
    return [record.content for record in facts(files, User)]


@pytest.fixture
def held(files):
    made = Chat(files, "read-only")
    yield made
    made.close()


# ---- writing --------------------------------------------------------------------------------------------------------


def test_a_new_chat_begins_with_what_it_is_and_its_system_prompt(files, workspace):
    meta, system = chat.read(files)
    assert isinstance(meta, Meta)
    assert (meta.chat_id, meta.cwd, meta.provider, meta.model) == (files.chat_id, str(workspace), "demo", "demo")
    assert system == System(content="You are a test.")
    assert stat.S_IMODE(files.chat.stat().st_mode) == 0o600


def test_what_is_appended_is_there_for_the_next_one_who_opens_it(files, held):
    held.append(user("a\u2028b\u0085c\x0bd"))
    held.append(user("中文😀", "2"))
    assert held.records == chat.read(files)
    assert contents(files) == ["a\u2028b\u0085c\x0bd", "中文😀"]
    assert files.chat.read_bytes().count(b"\n") == 4


def test_ten_chats_made_in_one_second_have_ten_ids(home, workspace):
    made = [chat.create(home, cwd=workspace, provider="p", model="m", system="s") for _ in range(10)]
    assert len({files.chat_id for files in made}) == 10
    assert sorted(catalogue.ids(home)) == sorted(files.chat_id for files in made)


def test_the_fields_given_besides_are_in_the_first_record(home, workspace):
    made = chat.create(home, cwd=workspace, provider="p", model="m", system="s", base_url="http://x")
    meta = chat.meta(chat.read(made))
    assert meta.base_url == "http://x"


def test_an_unknown_chat_cannot_be_opened_and_is_not_made(home):
    with pytest.raises(NoChat):
        Chat(home.files("2026-06-20-143012-a8f3"), "read-only")
    assert not home.root.exists()


def test_a_chat_has_one_holder(files):
    first = Chat(files, "read-only")
    with pytest.raises(Held, match=f"pid {os.getpid()} "):
        Chat(files, "read-only")
    first.close()
    Chat(files, "read-only").close()


# ---- torn, damaged, replaced ----------------------------------------------------------------------------------------

LAST = records.encode(user("中文😀 the last one", "2"))


@pytest.mark.parametrize("left", range(len(LAST)))
def test_a_last_line_cut_at_any_byte_costs_only_itself(files, left):
    with open(files.chat, "ab") as file:
        file.write(records.encode(user("first")) + LAST[:left])
    before = files.chat.read_bytes()
    for number in range(2):
        opened = Chat(files, "read-only")
        assert len(chat.damage(opened.records)) == (1 if 0 < left < len(LAST) - 1 else 0)
        opened.append(user(f"new {number}", f"n{number}"))
        opened.close()
    whole = ["中文😀 the last one"] if left == len(LAST) - 1 else []
    assert contents(files) == ["first", *whole, "new 0", "new 1"]
    assert files.chat.read_bytes().startswith(before), "no byte was cut or moved"


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=60))
def test_whatever_a_dead_writer_left_costs_no_other_record(tmp_path_factory, rubbish):
    home = Home(tmp_path_factory.mktemp("home"))
    files = chat.create(home, cwd=home.root, provider="p", model="m", system="s")
    with open(files.chat, "ab") as file:
        file.write(rubbish)
    opened = Chat(files, "read-only")
    opened.append(user("new"))
    opened.close()
    assert contents(files)[-1:] == ["new"]
    assert [type(record) for record in chat.read(files)[:2]] == [Meta, System]


def test_a_damaged_line_is_named_with_its_number_and_its_file(files):
    with open(files.chat, "ab") as file:
        file.write(b'{"half\n' + records.encode(user("after")))
    found = chat.read(files)
    (notice,) = chat.damage(found)
    assert isinstance(notice, Notice)
    assert f"{files.chat}: line 3 is damaged" in notice.text
    assert contents(files) == ["after"]


def test_an_unknown_record_is_kept(files, held):
    with open(files.chat, "ab") as file:
        file.write(b'{"type":"hologram","x":1}\n')
    held.append(user("after"))
    assert Unknown("hologram") in chat.read(files)


def test_a_disk_that_is_full_stops_the_writer_and_the_next_record_stands_on_its_own(files, held):
    held.append(user("before"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (files.chat.stat().st_size + 50, limits[1]))
    try:
        with pytest.raises(ChatBroken, match="File too large") as error:
            held.append(user("x" * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(files.chat) in str(error.value)
    held.append(user("after"))
    assert contents(files) == ["before", "after"]
    assert len(chat.damage(chat.read(files))) == 1


def _removed(path):
    path.unlink()


def _replaced(path):
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.rename(path)


@pytest.mark.parametrize(("change", "says"), [(_removed, "was removed"), (_replaced, "was replaced")])
def test_a_chat_that_changed_under_its_writer_is_noticed(files, held, change, says):
    held.check()
    change(files.chat)
    with pytest.raises(ChatBroken, match=says) as error:
        held.check()
    assert str(files.chat) in str(error.value)


APPEND = """
import sys
from pathlib import Path
from cass.chat import Chat
from cass.home import Home
from cass.records import User
files = Home(Path(sys.argv[1])).files(sys.argv[2])
opened = Chat(files, "read-only")
for number in range(10**9):
    opened.append(User(id=str(number), content="x" * 100_000, created_at="t"))
    print(number, flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_at_most_one_bad_line(files):
    for kills in range(1, 6):
        command = [sys.executable, "-c", APPEND, str(files.home.root), files.chat_id]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            written = [writer.stdout.readline() for _ in range(3)]
            writer.kill()
            written += writer.stdout.read().splitlines()
        found = chat.read(files)
        assert len([record for record in found if isinstance(record, User)]) >= len(written)
        assert len(chat.damage(found)) <= kills
        Chat(files, "read-only").close()


def test_no_descriptor_of_a_chat_is_inherited(files, held):
    code = "import os; print(*(os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if int(n) > 2))"
    done = subprocess.run(
        [sys.executable, "-c", f"import contextlib\nwith contextlib.suppress(OSError): {code}"],
        capture_output=True, text=True, timeout=PATIENT, close_fds=False,
    )  # fmt: skip
    assert files.chat_id not in done.stdout, done.stderr


# ---- the live file --------------------------------------------------------------------------------------------------


def status(state: str) -> Status:
    return Status(state=state, mode="read-only", provider="p", model="m", created_at=AT)


def test_each_turn_has_a_live_file_of_its_own(files):
    live = LiveFile(files)
    live.write(Delta(of="1", text="before any turn"))
    live.begin(status("thinking"))
    tail = Tail(files.live)
    live.write(Delta(of="1", text="a"))
    assert tail.read() == [status("thinking"), Delta(of="1", text="a")]
    live.begin(status("idle"))
    live.write(Delta(of="2", text="b"))
    assert tail.read() == [status("idle"), Delta(of="2", text="b")]
    assert stat.S_IMODE(files.live.stat().st_mode) == 0o600
    live.close()
    live.close()
    live.write(Delta(of="2", text="after the end"))
    assert tail.read() == []
    tail.close()


def test_a_flood_of_output_is_sampled_and_says_so(files):
    live = LiveFile(files)
    live.begin(status("running"))
    for number in range(200):
        live.write(ToolOutput(tool_call_id="c", text=f"{number:07} " + "x" * 65_528))
    live.write(ToolOutput(tool_call_id="other", text="quiet"))
    live.close()
    tail = Tail(files.live)
    found = [record for record in tail.read() if isinstance(record, ToolOutput)]
    tail.close()
    assert found[-1] == ToolOutput(tool_call_id="other", text="quiet")
    whole = [record for record in found if "a flood of output" not in record.text]
    assert sum(len(record.text) for record in whole) <= LiveFile.OUTPUT_LIMIT + 10
    samples = [record.text for record in found if "a flood of output" in record.text]
    assert samples
    assert all(len(text) < LiveFile.SAMPLE + 200 for text in samples)
    assert files.live.stat().st_size < LiveFile.OUTPUT_LIMIT * 2


# ---- finding --------------------------------------------------------------------------------------------------------


def make(home: Home, chat_id: str, *found, cwd="/w", model="m", at=AT) -> None:
    home.make()
    first = Meta(chat_id=chat_id, created_at=at, provider="p", model=model, cwd=str(cwd))
    home.files(chat_id).chat.write_bytes(b"".join(map(records.encode, [first, System(content="s" * 5000), *found])))


def ids(found) -> list[str]:
    return [summary.chat_id for summary in found]


def test_chats_are_listed_by_their_last_record(home):
    make(home, "1-c", user("old", at="2026-01-02T00:00:00.000Z"))
    make(home, "2-b", user("newest", at="2026-01-03T00:00:00.000Z"))
    make(home, "3-a", user("oldest", at="2026-01-01T00:00:00.000Z"))
    assert ids(catalogue.summaries(home)) == ["2-b", "1-c", "3-a"]
    assert [summary.title for summary in catalogue.summaries(home)] == ["newest", "old", "oldest"]


def test_a_summary_says_what_a_chat_is_about_in_one_line(home):
    said = [user("first\n  line\twith \u0007 things"), user("second")]
    make(home, "1", *said, model="a/b", at="2026-01-01T00:00:00.000Z")
    (found,) = catalogue.summaries(home)
    assert found == catalogue.Summary(
        "1", "2026-01-01T00:00:00.000Z", AT, "a/b", "/w", "first line with \u0007 things", False
    )


@pytest.mark.parametrize(
    ("found", "title"),
    [((), ""), ((user("x" * 1000),), "x" * 200), ((user("first " + "é" * 300_000),), "first " + "é" * 194)],
)
def test_a_title_may_be_missing_or_cut(home, found, title):
    make(home, "1", *found)
    assert catalogue.summaries(home)[0].title == title


def test_a_last_record_that_is_long_is_dated_by_its_file(home):
    make(home, "1", user("x" * 10_000))
    os.utime(home.files("1").chat, (0, 1767225600))
    assert catalogue.summaries(home)[0].changed_at == "2026-01-01T00:00:00.000Z"


def test_a_first_record_may_be_long(home):
    make(home, "1", user("hi"), cwd="/w" + "/deep" * 2000)
    (found,) = catalogue.summaries(home)
    assert (len(found.cwd), found.title) == (10_002, "hi")


def test_only_chats_of_the_workspace_are_listed_where_one_is_given(home, tmp_path):
    real, other, link = tmp_path / "real", tmp_path / "other", tmp_path / "link"
    real.mkdir()
    other.mkdir()
    link.symlink_to(real)
    make(home, "1", cwd=real)
    make(home, "2", cwd=other)
    make(home, "3", cwd=link)
    assert sorted(ids(catalogue.summaries(home, real))) == ["1", "3"]
    assert sorted(ids(catalogue.summaries(home, link))) == ["1", "3"]
    assert sorted(ids(catalogue.summaries(home))) == ["1", "2", "3"]


def test_what_is_no_chat_is_passed_over(home):
    make(home, "1")
    home.files("2").chat.write_bytes(b"rubbish\n")
    home.files("3").chat.write_bytes(b"")
    home.files("4").chat.mkdir()
    (home.conversations / "notes.txt").write_text("x")
    assert ids(catalogue.summaries(home)) == ["1"]
    assert catalogue.summary(home.files("5")) is None


@pytest.mark.parametrize("kind", ["fifo", "socket", "directory", "terminal"])
def test_what_is_no_file_hangs_no_list_and_is_no_chat(home, workspace, monkeypatch, kind):
    make(home, A, cwd=workspace)
    path = home.files(B).chat
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            monkeypatch.chdir(path.parent)
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(path.name)
            monkeypatch.chdir(workspace)
        case "directory":
            path.mkdir()
        case _:
            path.symlink_to("/dev/tty")
    assert ids(catalogue.summaries(home, workspace)) == ids(catalogue.summaries(home)) == [A]
    assert catalogue.find(home, ".").chat_id == A
    with pytest.raises(NoChat, match="is not a file"):
        catalogue.find(home, B)


def test_a_home_without_chats_lists_none(home):
    assert catalogue.summaries(home) == []
    assert catalogue.ids(home) == []


A, B = "2026-06-20-143012-a8f3", "2026-06-20-150000-a8b1"


@pytest.mark.parametrize(("text", "id"), [(A, A), ("a8f3", A), ("143012", A), ("8b1", B), (B, B)])
def test_any_unique_part_of_an_id_finds_a_chat(home, text, id):
    make(home, A)
    make(home, B)
    assert catalogue.find(home, text).chat_id == id


def test_a_whole_id_is_found_also_where_it_is_a_part_of_another(home):
    make(home, A)
    make(home, A + "-2")
    assert catalogue.find(home, A).chat_id == A


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("a8", UsageError, f"fits 2 chats: {A}, {B}"),
        ("zzz", NoChat, "cass ls --all"),
        ("", NoChat, "no chat"),
        ("../x", NoChat, "no chat"),
        ("*", NoChat, "no chat"),
    ],
)
def test_what_fits_none_or_several_is_an_error_that_helps(home, text, error, says):
    make(home, A)
    make(home, B)
    with pytest.raises(error, match=r".") as found:
        catalogue.find(home, text)
    assert says in str(found.value)


def test_a_dot_is_the_chat_of_the_environment_else_the_latest_of_the_directory(home, workspace, monkeypatch):
    make(home, A, cwd=workspace)
    make(home, B, user("later", at="2026-07-01T00:00:00.000Z"), cwd="/elsewhere")
    assert catalogue.find(home, ".").chat_id == A
    assert catalogue.find(home, ".", workspace).chat_id == A
    monkeypatch.setenv("CASS_CHAT", "a8b1")
    assert catalogue.find(home, ".").chat_id == B


def test_a_dot_where_there_is_no_chat_says_how_to_see_others(home, workspace):
    make(home, A, cwd="/elsewhere")
    with pytest.raises(NoChat, match=r"cass ls --all"):
        catalogue.find(home, ".")


def test_a_home_that_cannot_be_written_is_named(home, workspace):
    home.make()
    home.conversations.rmdir()
    home.conversations.write_text("in the way")
    with pytest.raises((CassError, OSError)) as error:
        chat.create(home, cwd=workspace, provider="p", model="m", system="s")
    assert str(home.conversations) in str(error.value)
