"""What holds in every language, whatever state a file is in."""

import re
from textwrap import dedent

import pytest
from hypothesis import given, strategies as st

from pipeline.features.ingest.project.describe import render_outline
from pipeline.features.ingest.project.files import language_of
from pipeline.features.ingest.project.outline import outline_of
from tests.fakes.properties import examples

SOURCES = {
    "a.py": """
        '''Doc.'''
        import b
        @app.get("/x")
        class A(B):
            c: int = 3
            def d(self, e=1): ...
    """,
    "a.js": """
        /** Doc. */
        const b = require('b')
        class A { #p() {} get q() {} }
        module.exports = { A, c() {} }
    """,
    "a.ts": """
        import b from './b'
        export default abstract class A<T> { d = (e: T) => e }
        export enum F { G = 1 }
        it('h', () => {})
    """,
    "a.tsx": """
        export const A = memo((props: P) => <b>{props.c}</b>)
        export namespace D { export type E = { f: g } }
    """,
    "a.go": """
        // Package a.
        package a
        import b "b"
        type C struct { D int }
        func (e *C) F(g ...int) (h error) {}
        const I = 1
    """,
    "a.rs": """
        //! Doc.
        use b::{c, d};
        /// It.
        pub struct E<F> { pub g: F }
        impl<F> E<F> { pub fn h(&self) -> F {} }
        #[test]
        fn i() {}
    """,
    "A.java": """
        package a;
        import b.C;
        /** It. */
        @D("x")
        public class A<T> extends E {
            int f;
            @Test void g(int... h) {}
            enum I { J }
        }
    """,
}
JUNK = [
    "",
    "(",
    ")",
    "{",
    "}",
    '"',
    "'",
    "`",
    "/*",
    "*/",
    "\n",
    "\\",
    "class ",
    "def ",
    "=",
    "@",
    "<",
    "é",
    "\x00",
    "\u2028",
    ";",
]


@given(
    st.sampled_from(sorted(SOURCES)),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(JUNK)), min_size=1, max_size=4),
)
@examples(40)
def test_a_file_in_any_state_has_an_outline(name, edits):
    source = dedent(SOURCES[name])
    for place, length, junk in edits:
        at = int(place * len(source))
        source = source[:at] + junk + source[at + length :]
    language = language_of(name)
    outline = outline_of(source.encode(), language.grammar)
    assert all(1 <= symbol.line <= source.count("\n") + 1 for symbol in outline.symbols)
    for part in render_outline(f"{name} · {language.name}", outline, [one.module for one in outline.imports]):
        assert part.startswith(name)
        assert len(part) <= 10_000


@pytest.mark.parametrize("name", SOURCES)
def test_every_symbol_is_on_its_reported_line(name):
    source = dedent(SOURCES[name])
    symbols = outline_of(source.encode(), language_of(name).grammar).symbols
    assert len(symbols) > 1
    for symbol in symbols:
        own = re.split(r"\.|::|: ", symbol.name)[-1]
        assert own
        assert own in source.splitlines()[symbol.line - 1]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("name", "piece"), [("a.js", "// a\n"), ("a.go", "// a\n"), ("a.py", "# a\n"), ("a.rs", "/// a\n")]
)
def test_a_file_of_nothing_but_comments_takes_no_longer_than_another(name, piece):
    # The grammars' own queries would look for a definition from each comment on, for a minute.
    outline = outline_of((piece * 40_000 + "function_or_none\n").encode(), language_of(name).grammar)
    assert outline.symbols == ()
