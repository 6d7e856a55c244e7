import pytest

TYPESCRIPT = """
    /**
     * @license Copyright 2020 Somebody
     */

    /**
     * @fileoverview Keeps the locks
     * of a canal.
     */
    import type { Boat } from './boat.js';
    import express, * as all from "express";
    import legacy = require("legacy-canal");
    export * from './basin';
    export { hidden as shown };

    /** Where a boat waits. See {@link Boat#name}. */
    @Component({ selector: 'canal-lock', standalone: true, imports: [], changeDetection: 1, template: '<b>a</b>' })
    export default class Lock<T> extends Chamber<T> implements Fills, Drains {
      private level = 0;
      static depth?: number;
      #gate = 1;

      constructor(private readonly boats: Boat[]) { super(); }

      /**
       * Lets water in.
       * @param speed how fast
       */
      async fill(speed: number, slow = false): Promise<void> {}

      get isFull(): boolean { return true; }

      @HostListener('click')
      onClick = (event: Event): void => {};

      protected drain(): void {}
      _quiet() {}
    }

    export interface Gate extends Door { width: number; open(by: Person): void; readonly height?: number }
    export type Side = 'left' | 'right';
    export type Size = { width: number };
    export enum State { Full, Empty = 'empty' }

    // Adds two levels.
    export const add = async (a: number, { b, c }: Options): Promise<number> => a;

    export const LIMIT = 5, other = compute({ a: 1, b: 2, c: 'a value that is too long to be told on a line' });
    const local = 3;
    function hidden(x: string): void {}
    function unseen() {}
    export function over(a: string): void;
    export function over(a: number): void;
    /** Does both. */
    export function over(a: unknown) {}
    export namespace Water {
      export function pump(rate: number) {}
      function leak() {}
    }
    export abstract class Base { abstract start(): void; }
"""


def test_a_typescript_file(project):
    project.write(
        {"src/lock.ts": TYPESCRIPT, "src/boat.ts": "export const a = 1;", "src/basin/index.ts": "export const b = 1;"}
    )
    assert project.read_lines("src/lock.ts") == [
        "src/lock.ts · TypeScript, 59 lines: Keeps the locks of a canal.",
        (
            "@Component class Lock<T> extends Chamber<T> implements Fills, Drains (l. 17): Where a boat waits. "
            "Fields: depth."
        ),
        "Lock.constructor(private readonly boats: Boat[]) (l. 22).",
        "async Lock.fill(speed: number, slow = false): Promise<void> (l. 28): Lets water in.",
        "get Lock.isFull(): boolean (l. 30).",
        "@HostListener('click') Lock.onClick(event: Event): void (l. 33).",
        "interface Gate extends Door (l. 39). Fields: width, height.",
        "Gate.open(by: Person): void (l. 39).",
        "type Side = 'left' | 'right' (l. 40).",
        "type Size (l. 41). Fields: width.",
        "enum State (l. 42). Fields: Full, Empty.",
        "async add(a: number, { b, c }: Options): Promise<number> (l. 45): Adds two levels.",
        "hidden(x: string): void (l. 49).",
        "over(a: string): void (l. 51).",
        "over(a: number): void (l. 52).",
        "over(a: unknown) (l. 54): Does both.",
        "Water.pump(rate: number) (l. 56).",
        "abstract class Base (l. 59).",
        "abstract Base.start(): void (l. 59).",
        "Constants: LIMIT = 5 (l. 47), other (l. 47).",
        "Private: Lock.drain (l. 35), Lock._quiet (l. 36), unseen (l. 50), Water.leak (l. 57).",
        "Imports: src/boat.ts, src/basin/index.ts, express, legacy-canal.",
    ]


def test_a_commonjs_module(outline):
    text = """
        'use strict'
        /* eslint-disable no-console */
        // Reads the gauge.

        const fs = require('fs')
        var app = exports = module.exports = {}
        /** Opens it. */
        function open (path, done) {}
        function close () {}
        exports.level = function (at) {}
        module.exports = { open, shut: close, read() {}, at: (x) => x }
        Gauge.prototype.reset = function () {}
        require('./setup')
    """
    assert outline("gauge.js", text) == [
        "gauge.js · JavaScript, 13 lines: Reads the gauge.",
        "open(path, done) (l. 8): Opens it.",
        "close() (l. 9).",
        "level(at) (l. 10).",
        "read() (l. 11).",
        "at(x) (l. 11).",
        "Private: Gauge.reset (l. 12).",
        "Imports: fs, ./setup.",
    ]


def test_a_component_in_jsx(outline):
    text = """
        import React from 'react'

        // Shows a boat.
        export function Boat({ name, onClick }) { return <div onClick={onClick}>{name}</div> }
        export const Dock = React.memo((props) => <Boat {...props} />)
    """
    assert outline("Boat.jsx", text) == [
        "Boat.jsx · JavaScript, 5 lines: Shows a boat.",
        "Boat({ name, onClick }) (l. 4).",
        "Dock = React.memo (l. 5).",
        "Imports: react.",
    ]


def test_script_without_exports_lists_its_top_level_symbols(outline):
    text = "(function () {\n  function start(a) {}\n  const LEVEL = 3\n})()\n"
    assert outline("main.js", text)[1:] == ["start(a) (l. 2).", "Constants: LEVEL = 3 (l. 3)."]


def test_javascript_tests_are_listed_by_title(outline):
    text = """
        describe('lock', () => {
          it('fills', async () => {})
          describe('when full', () => { test(`drains`, () => {}) })
        })
    """
    assert outline("lock.test.ts", text)[1:] == ["Tests: lock (l. 1), fills (l. 2), when full (l. 3), drains (l. 3)."]


@pytest.mark.parametrize("ending", ["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"])
def test_every_ending_is_read(outline, ending):
    assert outline(f"a.{ending}", "export function go(a) {}\n")[1] == "go(a) (l. 1)."


def test_broken_typescript_is_outlined_partially(outline):
    lines = outline(
        "a.ts", "export function one(a: number) {}\nexport class { {{ ;\nexport function two(b: string) {}\n"
    )
    assert "one(a: number) (l. 1)." in lines


def test_comment_describes_only_the_next_declaration(outline):
    lines = outline("a.ts", "// Opens.\nexport function open() {}\n// Closes.\nexport function close() {}\n")
    assert lines == ["a.ts · TypeScript, 4 lines.", "open() (l. 2): Opens.", "close() (l. 4): Closes."]
