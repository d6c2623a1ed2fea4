"""Hunks: each line of a diff has the number that it has in its file, or had."""

from cass import hunks


def test_lines_are_numbered_as_in_their_file_whatever_they_begin_with():
    diff = "@@ -1,2 +1,2 @@\n a\n-b\n+@@\n@@ -10,1 +10,1 @@\n@@ no head\n\\ No newline\n"
    assert list(hunks.lines(diff)) == [
        (" ", "1", "a"), ("-", "2", "b"), ("+", "2", "@@"), (hunks.GAP, "", ""),
        ("@", "10", "@ no head"), (hunks.REMARK, "", " No newline"),
    ]  # fmt: skip
