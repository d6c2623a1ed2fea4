"""Pages: what an HTML document says, as Markdown."""

import pytest

from cass.web import page


def markdown(body: str, url: str = "https://h/a/b") -> str:
    return page.read(f"<!doctype html><title>t</title>{body}", url).markdown


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<h2>Head</h2><p>a <b>b</b> <i>c</i> <code>d`e</code>", "## Head\n\na **b** *c* ``d`e``"),
        ("<ul><li>one<li>two<ul><li>three</ul></ul>", "- one\n- two\n\n  - three"),
        ("<ol><li>one<li>two</ol>", "1. one\n2. two"),
        ("<blockquote><p>said</blockquote>", "> said"),
        ("<dl><dt>term<dd>meaning</dl>", "term\n\nmeaning"),
        # links
        ("<p><a href='../c?d#e'>x</a>", "[x](https://h/c?d#e)"),
        ("<p><a href='//i/'>x</a> <a href=#y>y</a> <a href='javascript:z'>z</a> <a>w</a>", "[x](https://i/) y z w"),
        ("<base href=/base/><p><a href=x>x</a>", "[x](https://h/base/x)"),
        ("<p><a href='http://['>x</a>", "x"),
        ("<base href='http://['><base href=/b/><p><a href=c>x</a>", "[x](https://h/a/c)"),
        ("<base href='javascript:'><p><a href=c>x</a>", "[x](https://h/a/c)"),
        (
            "<h2>Head<a href=#h>§</a></h2><p><a href=/play></a> <a href=/z><img alt=z></a> <a href=#1>1</a>",
            "## Head\n\n[[image: z]](https://h/z) 1",
        ),
        ("<p>as_slice(&amp;self) -> [T] &lt;b> * \\ ~", "as_slice(&self) -> [T] <b> * \\ ~"),
        ("<p><img src=a alt='a cat'> and <img src=b>", "[image: a cat] and"),
        # code
        ("<pre>def f():\n    return 1\n\n\nx</pre>", "```\ndef f():\n    return 1\n\n\nx\n```"),
        ("<pre><code class='language-py hl'>x = 1\n</code></pre>", "```py\nx = 1\n```"),
        ("<div class='highlight-python'><div><pre><b>x</b> &lt; 1</pre></div></div>", "```python\nx < 1\n```"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        # tables
        (
            "<table><tr><th>A<th>B<tr><td>1|2<td><p>two <b>x</b></table>",
            "| A | B |\n| --- | --- |\n| 1\\|2 | two **x** |",
        ),
        ("<table><caption>C</caption><tr><td>1<tr><td>2<td>3</table>", "C\n\n| 1 |  |\n| --- | --- |\n| 2 | 3 |"),
        ("<table><tr><td><p>one<p>two<td><ul><li>x</ul></table>", "one\n\ntwo\n\n- x"),
        (
            "<table><tr><td><table><tr><td>in<td>ner</table><td>side</table>",
            "| in | ner |\n| --- | --- |\n\nside",
        ),
        ("<table></table><p>x", "x"),
        # what stands around the content
        ("<script>a</script><style>b</style><noscript>c</noscript><nav>d</nav><footer>e</footer><p>x<!-- f -->", "x"),
        (
            "<div hidden>a</div><p aria-hidden=true>b<p style='x:y; display: none'>c<div role=navigation>d</div><p>x",
            "x",
        ),
        ("<form><input value=a><button>b</button><svg><text>c</text></svg><template>d</template><p>x</form>", "x"),
        (f"<p>around<main><p>{'x' * 200}</main><p>around", "x" * 200),
        ("<p>around<main><p>x</main>", "around\n\nx"),
        (f"<p>a<article>{'x' * 200}</article><article>{'y' * 200}</article>", f"a\n\n{'x' * 200}\n\n{'y' * 200}"),
        ("", ""),
    ],
)
def test_a_page_says_in_markdown_what_it_says_to_a_reader(body, expected):
    assert markdown(body) == expected


def test_the_title_is_one_line():
    assert page.read("<title>\n A &amp;\n  B </title><p>x", "https://h/").title == "A & B"
    assert page.read("<p>x", "https://h/").title == ""


@pytest.mark.parametrize(
    "html",
    [
        *("<div>" * 20_000 + "x", "<b>" * 5_000 + "x", "<ul><li>" * 5_000 + "x", "<blockquote>" * 5_000 + "x"),
        *("<table><tr><td>" * 3_000 + "x", "<pre>" * 5_000 + "x", "<a href=x>" * 5_000 + "x"),
        "<a href=x><table><tr><td>" * 2_000 + "x",
        *("<img alt=x>" * 20_000, "<td>" * 10_000, "<!--" * 50_000 + "x", "<p x='" * 20_000, "&amp" * 50_000),
        "<table><tr>" + "<td>x" * 5_000 + "<tr><td>x" * 5_000,
    ],
    ids=lambda html: html[:12],
)
def test_a_page_that_is_built_to_be_hard_is_read_all_the_same(html):
    assert len(markdown(html)) < 40 * len(html)
