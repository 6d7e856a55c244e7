"""Manifests and prose."""

from pipeline.kernel.records import Kind


def test_document_is_split_by_sections(project):
    long = "Water runs downhill. " * 60
    project.write(
        {
            "README.md": f"""---
layout: page
---
<p align="center"><img src="logo.png"></p>

# Canal

[![build](https://a/b.svg)](https://a)

Locks for boats.

## Use

```sh
# not a heading
canal up <a href="x"> <!-- kept -->
```

## Rules

{long}

### At night

{long}
"""
        }
    )
    drafts = project.items()["README.md"].drafts
    assert [draft.content.splitlines()[0] for draft in drafts] == [
        "README.md · Canal",
        "README.md · Canal › Rules",
        "README.md · Canal › Rules › At night",
    ]
    assert drafts[0].content.startswith(
        'README.md · Canal\nLocks for boats.\n\nUse\n```sh\n# not a heading\ncanal up <a href="x"> <!-- kept -->\n```'
    )
    assert {(draft.kind, draft.tags) for draft in drafts} == {(Kind.DOCUMENT, ("document", "prose"))}
    assert drafts[0].details == {"title": "Canal"}
    assert drafts[1].metadata == {"path": "README.md", "lines": 25, "part": 2, "parts": 3}


def test_nothing_of_a_long_section_is_lost(project):
    words = [f"word{n}" for n in range(3000)]
    project.write({"docs/long.rst": f"Title\n=====\n\n{' '.join(words)}\n\nPart\n----\n\nThe end.\n"})
    drafts = project.items()["docs/long.rst"].drafts
    assert all(draft.content.startswith("docs/long.rst · Title") for draft in drafts)
    told = " ".join(draft.content for draft in drafts).split()
    assert [word for word in told if word.startswith("word")] == words
    assert drafts[-1].content.startswith("docs/long.rst · Title › Part\n")


def test_a_readme_without_an_ending_is_prose(project):
    project.write({"README": "Reads the gauge.\n"})
    assert project.read_lines("README") == ["README", "Reads the gauge."]


def test_a_pyproject(project):
    text = """
        [project]
        name = "canal"
        version = "1.2"
        description = "Locks for\\n boats."
        requires-python = ">=3.11"
        dependencies = ["flask>=3,<4", "ruamel.yaml", "canal-water[fast] ; python_version > '3'"]
        [project.scripts]
        canal = "canal.cli:main"
        [project.optional-dependencies]
        redis = ["redis>=6"]
        [dependency-groups]
        dev = ["pytest", {include-group = "docs"}]
        [tool.ruff]
        line-length = 100
    """
    assert project.write({"pyproject.toml": text}).read_lines("pyproject.toml") == [
        "pyproject.toml · Python project canal 1.2: Locks for boats.",
        "Needs: Python >=3.11.",
        "Commands: canal = canal.cli:main.",
        "Depends on: flask, ruamel.yaml, canal-water.",
        "For redis: redis.",
        "For dev: pytest.",
        "Settings of tools: ruff.",
    ]


def test_a_package_json(project):
    text = """
        {"name": "@canal/web", "version": "2.0.0", "description": "Shows boats", "bin": "cli.js", "main": "dist/a.js",
         "scripts": {"test": "vitest run", "build": "tsc -p ."}, "workspaces": {"packages": ["packages/*"]},
         "engines": {"node": ">=20"}, "dependencies": {"react": "^19"}, "devDependencies": {"vitest": "1"}, "files": 3}
    """
    assert project.write({"web/package.json": text}).read_lines("web/package.json") == [
        "web/package.json · npm package @canal/web 2.0.0: Shows boats.",
        "Scripts: test = vitest run, build = tsc -p ..",
        "Commands: @canal/web = cli.js.",
        "Entry points: main = dist/a.js.",
        "Workspaces: packages/*.",
        "Needs: node >=20.",
        "Depends on: react.",
        "For development: vitest.",
    ]


def test_a_cargo_toml(project):
    text = """
        [package]
        name = "canal"
        version = "0.1.0"
        edition = "2021"
        description = "Locks"
        [[bin]]
        name = "lock"
        path = "src/lock.rs"
        [features]
        fast = []
        [dependencies]
        serde = { version = "1" }
        [dev-dependencies]
        insta = "1"
        [workspace]
        members = ["water", "gate"]
    """
    assert project.write({"Cargo.toml": text}).read_lines("Cargo.toml") == [
        "Cargo.toml · Rust crate canal 0.1.0: Locks.",
        "Workspace members: water, gate.",
        "Commands: lock = src/lock.rs.",
        "Needs: edition 2021.",
        "Features: fast.",
        "Depends on: serde.",
        "For development: insta.",
    ]


def test_a_go_mod(project):
    text = """
        module example.com/canal // the canal

        go 1.22

        require github.com/a/one v1.0.0
        require (
        \tgithub.com/b/two v1.2.3
        \tgithub.com/c/three v0.1.0 // indirect
        )
        replace (
        \tgithub.com/d/four => ../four
        )
    """
    assert project.write({"go.mod": text}).read_lines("go.mod") == [
        "go.mod · Go module example.com/canal for Go 1.22.",
        "Depends on: github.com/a/one, github.com/b/two.",
    ]


def test_a_pom(project):
    text = """
        <?xml version="1.0"?>
        <project xmlns="http://maven.apache.org/POM/4.0.0">
          <parent><groupId>com.canal</groupId><artifactId>all</artifactId><version>3</version></parent>
          <artifactId>lock</artifactId>
          <description>Fills
            chambers</description>
          <modules><module>gate</module></modules>
          <dependencies><dependency><groupId>a</groupId><artifactId>junit</artifactId></dependency></dependencies>
        </project>
    """
    assert project.write({"pom.xml": text}).read_lines("pom.xml") == [
        "pom.xml · Maven project com.canal:lock 3: Fills chambers.",
        "Modules: gate.",
        "Parent: all.",
        "Depends on: junit.",
    ]


def test_make_and_just_targets_are_listed(project):
    make = """
        VERSION := 3
        URL = http://a:80

        # Check everything.
        test: build
        \t@pytest -q

        build: ## Build it
        \ttsc
        .PHONY: test
    """
    project.write({"Makefile": make, "justfile": "# Serve it\nserve port='80': build\n    python -m http\n"})
    assert project.read_lines("Makefile") == [
        "Makefile · what make runs.",
        "make test (l. 5): Check everything. — pytest -q.",
        "make build (l. 8): Build it — tsc.",
    ]
    assert project.read_lines("justfile") == [
        "justfile · what just runs.",
        "just serve port='80' (l. 2): Serve it — python -m http.",
    ]


def test_manifest_values_of_the_wrong_type_are_ignored(project):
    project.write({"package.json": '{"name": "a", "scripts": [], "bin": 3, "dependencies": "b", "workspaces": 4}'})
    project.write({"pyproject.toml": 'tool = 3\n[project]\nname = 3\ndependencies = "a"\ndescription = "Fine"\n'})
    project.write({"Cargo.toml": 'bin = 3\nworkspace = 4\n[package]\nname = ["a"]\ndescription = "Fine"\n'})
    assert project.read_lines("package.json") == ["package.json · npm package a."]
    assert project.read_lines("pyproject.toml") == ["pyproject.toml · Python project: Fine."]
    assert project.read_lines("Cargo.toml") == ["Cargo.toml · Rust crate: Fine."]
