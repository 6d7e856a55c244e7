"""Every table is declared, and what the declarations call text is gone from every file after a purge."""

import json
from datetime import UTC, datetime

import pytest

from pipeline.features.citations.store import BrokenText, replace_all
from pipeline.features.snapshots.job import take_snapshot
from pipeline.kernel.store import home_file, memories, migrations, tables
from pipeline.kernel.store.log_start import start_log
from tests.contract.test_store_tables import OF_A_FILE, migrated, read_sqlite
from tests.integration.test_purged_everywhere import SECRET, list_traces, purge

TABLES = (*tables.WORKSPACE, *tables.HOME)
# Columns of text that contain no words of a memory, and why.
NO_TEXT = {
    "ids, row numbers, keys, hashes and stamps": """
        id uid memory_id other_id memory_ids session_id agent_id scope_id author node mark hash content_hash row_hash
        replaced_hash hlc after signature key digest request token verify_key recipient seed age secret owner
        lease_owner version agent_session.parent
    """,
    "times": """
        at day since *_at valid_from valid_to
    """,
    "values of an enumeration, names of code and states": """
        kind scope_kind target_kind source trust tier sensitivity event op stage model made_by origin state status
        actor action outcome how role tool type reasons counts component host role conclusion.kind prediction.state
        job via shared_from
    """,
    "names of workspaces, people, devices, remotes, programs and folders": """
        workspace workspaces scopes person name device email issuer subject url remote branch agent cwd
    """,
    "the kind and scope of a memory, without its words": "about",
    "a command or a file of an agent: deleted if the memory was made of it": "action.target",
    "the message of an exception of a job, which names no memory": "job_run.error remote.error",
    "what sync did: names of devices, remotes and workspaces": "event.says put_aside.reason circle.notice",
    "the path of a file or the number of an issue that was read": "ingest_item.key",
    "the state of the import of sessions: counts and hashes": "transcript_value.value",
}
WITHOUT_TEXT = {column for columns in NO_TEXT.values() for column in columns.split()}
# The write itself fills these, or a transaction empties it.
MADE_BY_WRITES = {"memory", "operation", "touched", "meta"}
ENUMERATED = {"kind": "person", "target_kind": "person", "role": "user", "stage": "embed", "workspace": "default"}
TEXT = json.dumps({"text": SECRET})


@pytest.fixture(scope="module")
def schema():
    """Return the columns of every SQLite file of a data directory, as (name, type), by table."""
    columns = {}
    for steps in (migrations.MIGRATIONS, home_file.MIGRATIONS):
        with migrated(steps) as db:
            columns |= {name: table.columns for name, table in read_sqlite(db).items() if name not in OF_A_FILE}
    return {name: [(column, kind) for column, kind, *_ in found] for name, found in columns.items()}


def holds_no_text(table, column):
    return not WITHOUT_TEXT.isdisjoint({column, f"{table}.{column}", f"*_{column.rpartition('_')[2]}"})


def test_each_table_with_text_is_declared(schema):
    declared = {table.name: table for table in TABLES}
    # A feature keeps a text among the single values.
    assert [table.name for table in TABLES if table.name != "meta"] == [name for name in declared if name != "meta"]
    assert declared.keys() == schema.keys()
    unknown = [
        f"{name}.{column}"
        for name, columns in schema.items()
        for column, kind in columns
        if kind == "text" and column not in declared[name].text and not holds_no_text(name, column)
    ]
    assert unknown == []
    columns = {f"{name}.{column}" for name, found in schema.items() for column, _ in found}
    assert columns | {name.partition(".")[2] for name in columns} | {"*_at"} >= WITHOUT_TEXT


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_declaration_names_columns_of_its_table(schema, table):
    columns = {column for column, _ in schema[table.name]}
    named = {*table.key, *table.text, *table.memory, *table.quoting, *(["workspace"] if table.has_workspace else [])}
    assert named <= columns
    # Only what is erased may hold text: with its memory, as a quotation, or as an orphan.
    assert (
        not table.text
        or table.erasure
        or table.quoting
        or table.name
        in {"entity", "entity_alias", "arc"}
        | {
            "conclusion",
            "operation",
        }
    )


def fill(db, memory, filled, schema):
    """Fill each table with a row about a memory, with its words in every column of text."""
    keys = {"seq": memory.seq, "id": memory.id, "hash": memory.content_hash}
    defaults = {"bigint": 1, "double precision": datetime.now(UTC).timestamp(), "text": "[]"}
    for table in filled:
        row = {column: ENUMERATED.get(column, defaults[kind]) for column, kind in schema[table.name]}
        row |= {column: keys[column.rpartition("_")[2]] for column in table.memory} | dict.fromkeys(table.text, TEXT)
        values = ", ".join("?" * len(row))
        db.execute(f"DELETE FROM {table.name}")
        db.execute(f"INSERT INTO {table.name} ({', '.join(row)}) VALUES ({values})", list(row.values()))


def list_marked(db, among):
    """List the tables with a word of the memory in a column of text."""
    return {
        table.name
        for table in among
        for column in table.text
        if db.execute(f"SELECT 1 FROM {table.name} WHERE {column} LIKE '%zubrowkating%'").fetchone()
    }


def test_purge_erases_the_text_of_each_declared_table(client, container, home, digested, schema):
    workspace = container.workspace("default")
    start_log(workspace.create())
    memory_id = client.write(SECRET)
    digested()
    parts = ((workspace.database, tables.WORKSPACE), (container.operations.tables, tables.HOME))
    with workspace.database.read() as db:
        memory = memories.get(db, memory_id)
    for database, declared in parts:
        with database.write() as db:
            made = [table for table in declared if (table.text or table.memory) and table.name not in MADE_BY_WRITES]
            fill(db, memory, made, schema)
            if declared is tables.WORKSPACE:
                replace_all(db, {memory_id: BrokenText("mark", (SECRET,))})
            assert list_marked(db, declared) == {table.name for table in declared if table.text}
    if workspace.database.file is not None:
        take_snapshot(workspace.paths, datetime.now(UTC))
        assert len({file for file, _ in list_traces(home)}) > 2
    purge(client, memory_id)
    digested()
    assert list_traces(home) == []
    for database, declared in parts:
        with database.read() as db:
            assert list_marked(db, declared) == set()
