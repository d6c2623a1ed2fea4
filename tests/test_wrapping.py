import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from cass.viewer.wrapping import wrap


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("A quote 日本語 text: これは長い引用文です。", 20, ["A quote 日本語 text:", "これは長い引用文で", "す。"]),
        ("使用 foo() 函数可以解析输入的内容，然后返回", 20, ["使用 foo() 函数可以", "解析输入的内容，然后", "返回"]),
        ("内容，", 4, ["内", "容，"]),
        ("（内）容", 6, ["（内）", "容"]),
        ("한국어 문장은 띄어쓰기", 10, ["한국어", "문장은", "띄어쓰기"]),
        ("漢字 averyveryverylongword 漢", 8, ["漢字", "averyver", "yverylon", "gword 漢"]),
        ("漢字\n\n漢", 8, ["漢字", "", "漢"]),
    ],
)
def test_a_script_without_spaces_is_broken_between_its_characters(text, width, lines):
    assert [line.plain for line in wrap(Text(text), width)] == lines


@given(st.text("漢字，。（）ab \nが", max_size=60), st.integers(2, 20))
def test_wrapping_loses_nothing_but_spaces_and_fits(text, width):
    lines = [line.plain for line in wrap(Text(text), width)]
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(Text(line).cell_len <= width for line in lines)
