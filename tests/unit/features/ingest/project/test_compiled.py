"""Go, Rust and Java."""

GO = """
    // Copyright 2024 Somebody.
    // Licensed under the Apache License, Version 2.0.

    //go:build linux

    // Package lock fills and drains chambers.
    //
    // It has more to say.
    package lock

    import (
    \t"fmt"
    \tw "example.com/canal/water"
    )

    // MaxLevel is where it spills.
    const MaxLevel = 5

    const (
    \tSlow, Fast = iota, 2
    \thidden
    )

    var ErrFull = errors.New("full")

    // Lock holds a boat.
    type Lock struct {
    \tLevel int // in metres
    \tmu sync.Mutex
    \t*Gate
    \tX, Y int
    }

    type (
    \t// Filler fills.
    \tFiller interface {
    \t\tFill(w Water) error
    \t\tio.Closer
    \t}
    \tRate func(a int) error
    )

    // Fill lets water in. Slowly.
    func (l *Lock[T]) Fill(ctx context.Context, n int) (int, error) { return 0, nil }

    func (l Lock) spill() {}

    func New[T any](a, b int, opts ...Option) *Lock { return nil }

    func TestNew(t *testing.T) {}
"""


def test_a_go_file(project):
    project.write({"go.mod": "module example.com/canal\n", "water/water.go": "package water\n", "lock/lock.go": GO})
    assert project.read_lines("lock/lock.go") == [
        "lock/lock.go · Go, 50 lines: Package lock fills and drains chambers.",
        "type Lock struct (l. 27): Lock holds a boat. Fields: Level, Gate, X, Y.",
        "type Filler interface (l. 36): Filler fills. Fields: Fill.",
        "type Rate func(a int) error (l. 40).",
        "Lock.Fill(ctx context.Context, n int) (int, error) (l. 44): Fill lets water in.",
        "New[T any](a, b int, opts ...Option) *Lock (l. 48).",
        'Constants: MaxLevel = 5 (l. 17), Slow (l. 20), Fast (l. 20), ErrFull = errors.New("full") (l. 24).',
        "Tests: TestNew (l. 50).",
        "Private: Lock.spill (l. 46).",
        "Imports: water, fmt.",
    ]


RUST = """
    // Copyright 2024 Somebody

    //! Chambers that fill
    //! and drain.
    #![deny(warnings)]

    use std::collections::{HashMap, HashSet};
    use crate::water::pump::Rate;
    use serde::Deserialize as De;
    mod gate;

    /// A chamber.
    #[derive(Debug, Clone)]
    pub struct Lock<T> {
        pub level: T,
        secret: i32,
    }

    pub enum State { Full, Draining(i32), At { level: i32 } }

    /// What fills.
    pub trait Fill: Sized {
        /// Lets water in.
        fn fill(&mut self, rate: i32) -> Result<(), Error>;
    }

    impl<T> Lock<T> where T: Copy {
        /// Makes one.
        pub fn new(level: T) -> Self { todo!() }
        fn leak(&self) {}
    }

    impl std::fmt::Display for Lock<i32> {
        fn fmt(&self, f: &mut Formatter) -> Result { todo!() }
    }

    pub const MAX: usize = 5;
    const HIDDEN: usize = 6;
    pub type Level = i32;

    /// Shouts.
    #[macro_export]
    macro_rules! shout { () => {} }

    pub(crate) async fn drain<'a>(name: &'a str, mut by: i32) -> i32 where i32: Copy { 1 }

    pub mod inner { pub fn deep() {} }

    #[cfg(test)]
    mod tests {
        #[test]
        fn it_fills() {}
    }
"""


def test_a_rust_file(project):
    project.write({"src/lib.rs": RUST, "src/gate.rs": "pub fn a() {}", "src/water/mod.rs": "pub mod pump;"})
    assert project.read_lines("src/lib.rs") == [
        "src/lib.rs · Rust, 53 lines: Chambers that fill and drain.",
        "struct Lock<T> (l. 14): A chamber. Fields: level.",
        "enum State (l. 19). Fields: Full, Draining, At.",
        "trait Fill: Sized (l. 22): What fills.",
        "Fill::fill(&mut self, rate: i32) -> Result<(), Error> (l. 24): Lets water in.",
        "Lock::new(level: T) -> Self (l. 29): Makes one.",
        "impl std::fmt::Display for Lock (l. 33).",
        "type Level = i32 (l. 39).",
        "macro_rules! shout (l. 43): Shouts.",
        "async drain<'a>(name: &'a str, mut by: i32) -> i32 where i32: Copy (l. 45).",
        "inner::deep() (l. 47).",
        "Constants: MAX: usize = 5 (l. 37).",
        "Tests: tests::it_fills (l. 52).",
        "Private: Lock::leak (l. 30).",
        "Imports: src/water/mod.rs, src/gate.rs, std::collections, serde::Deserialize.",
    ]


JAVA = """
    /*
     * Licensed under the Apache License, Version 2.0.
     */
    package com.canal.lock;

    import java.util.List;
    import static java.util.Map.of;
    import com.canal.water.Pump;
    import com.canal.water.*;

    /**
     * Fills <b>chambers</b> for a {@link Boat}.
     *
     * @author somebody
     */
    @RestController
    @RequestMapping("/locks")
    public abstract class Lock<T> extends Chamber implements Fills, Drains {
        public static final int MAX = 5;
        protected int level;
        private String name;

        public Lock(int level) {}

        /** Lists them. */
        @Override
        @GetMapping("/all")
        public <R> List<String> list(final String by, int... at) throws IOException { return null; }

        private void leak() {}

        enum State { FULL, EMPTY { }; void flip() {} }

        record Size(int width, int height) {}

        interface Fills { void fill(); }
    }
"""


def test_a_java_file(project):
    main = "src/main/java/com/canal"
    project.write({f"{main}/lock/Lock.java": JAVA, f"{main}/water/Pump.java": "class Pump {}"})
    assert project.read_lines(f"{main}/lock/Lock.java") == [
        f"{main}/lock/Lock.java · Java, 37 lines: Fills chambers for a Boat.",
        (
            '@RestController @RequestMapping("/locks") class Lock<T> extends Chamber implements Fills, Drains (l. 18).'
            " Fields: level."
        ),
        "Lock.Lock(int level) (l. 23).",
        '@GetMapping("/all") <R> List<String> Lock.list(String by, int... at) throws IOException (l. 28): Lists them.',
        "enum Lock.State (l. 32). Fields: FULL, EMPTY.",
        "void Lock.State.flip() (l. 32).",
        "record Lock.Size(int width, int height) (l. 34). Fields: width, height.",
        "interface Lock.Fills (l. 36).",
        "void Lock.Fills.fill() (l. 36).",
        "Constants: Lock.MAX = 5 (l. 19).",
        "Private: Lock.leak (l. 30).",
        f"Imports: {main}/water/Pump.java, {main}/water, java.util.",
    ]


def test_java_tests_are_listed_by_name(outline):
    text = "class LockTest {\n    @Test\n    void fills() {}\n}\n"
    assert outline("src/test/java/LockTest.java", text)[1:] == [
        "class LockTest (l. 1).",
        "Tests: LockTest.fills (l. 3).",
    ]


def test_imports_of_a_deeply_nested_file_are_found(project):
    deep = "/".join(["d"] * 300)
    project.write({"go.mod": "module m\n", "w/w.go": "package w\n", f"{deep}/a.go": 'package a\n\nimport "m/w"\n'})
    assert project.read_lines(f"{deep}/a.go")[1:] == ["Imports: w."]


def test_broken_compiled_sources_are_outlined_partially(outline):
    assert "One() (l. 3)." in outline("a.go", "package a\n\nfunc One() {}\n\nfunc Broken( {\n\n")
    assert "one() (l. 1)." in outline("a.rs", "pub fn one() {}\npub fn broken( {\n")
    assert "class A (l. 1)." in outline("A.java", "class A { void one() {} }\nclass B { void ( }\n")
