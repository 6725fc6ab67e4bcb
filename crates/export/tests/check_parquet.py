#!/usr/bin/env python3
"""Reads an exported folder with DuckDB and with pyarrow, and compares what they find.

    check_parquet.py FOLDER [--ranks FOLDER] [--tally FILE] [--show | --write]

Runs all queries of docs/export-parquet.md on FOLDER; those on several ranks on the
other one, if it is given. --tally: the output of `hetrace tally --json --gross` of the one trace
in FOLDER must have the same sums. --show prints what the queries answer; --write puts it
into the document.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile

import duckdb
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

DOCUMENT = pathlib.Path(__file__).parents[3] / "docs" / "export-parquet.md"
# A block of the document, and the answer that may follow.
BLOCK = re.compile(r"```(sql|python)\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.S)


def check(true, what):
    if not true:
        sys.exit(f"check_parquet: {what}")


def tables(folder):
    """Each table as both see it."""
    for table in sorted(p for p in folder.iterdir() if p.is_dir()):
        arrow = ds.dataset(table, partitioning="hive")
        duck = duckdb.sql(f"FROM read_parquet('{table}/**/*.parquet', hive_partitioning = true)")
        yield table.name, arrow, duck


def compare(folder):
    rows = {}
    for name, arrow, duck in tables(folder):
        rows[name] = arrow.count_rows()
        check(rows[name] == len(duck.fetchall()), f"{name}: the numbers of rows differ")
        check(arrow.schema.names[:len(duck.columns)] == duck.columns, f"{name}: the columns differ")
        check(pq.read_table(folder / name).num_rows == rows[name], f"{name}: not read as one table")
        # Sums of all numbers, modulo what fits.
        table = arrow.to_table()
        for column, kind in zip(duck.columns, duck.types):
            if str(kind) not in ("INTEGER", "BIGINT", "UBIGINT") or column in ("host", "rank"):
                continue
            own = sum(v for v in table[column].to_pylist() if v is not None)
            other = duck.aggregate(f"coalesce(sum({column}), 0)").fetchall()[0][0]
            check(own == int(other), f"{name}.{column}: {own} and {other}")
    check(rows.get("trace", 0) > 0, "there is no trace")
    return rows


def compare_tally(folder, path):
    """The sums of hetrace's own tables."""
    tally = json.loads(pathlib.Path(path).read_text())

    def same(what, expected, query):
        found = {tuple(row[:2]): tuple(int(v or 0) for v in row[2:]) for row in duckdb.sql(query).fetchall()}
        check(found == expected, f"{what} differ from the tally: {set(found.items()) ^ set(expected.items())}")
        print(f"{len(found)} {what} have the sums of the tally")

    def table(name):
        return f"read_parquet('{folder}/{name}/**/*.parquet')"

    # The times of the tally are without calls that failed, and with what tracing took: it was made with --gross.
    same(
        "functions",
        {(r["api"], r["name"]): (r["calls"], r["total_ns"], r["self_ns"], r["errors"]) for r in tally["host"]},
        f"""SELECT api, name, sum(count), sum(duration_ns) FILTER (error IS NULL), sum(self_ns) FILTER (error IS NULL),
                   sum(count) FILTER (error IS NOT NULL)
            FROM {table('calls')} WHERE state IN ('finished', 'folded') GROUP BY ALL""",
    )
    same(
        "kinds of commands",
        {(r["kind"], r.get("symbol", r["name"])): (r["calls"], r["total_ns"], r["bytes"]) for r in tally["device"]},
        f"""SELECT kind, coalesce(kernel_symbol, kind), sum(weight), sum(duration_ns), sum(bytes)
            FROM {table('commands')} GROUP BY ALL""",
    )
    same(
        "ranges",
        {(r["style"], r["name"]): (r["calls"], r["total_ns"]) for r in tally["ranges"]},
        f"""SELECT style, coalesce(message, ''), count(*), sum(duration_ns)
            FROM {table('ranges')} WHERE end_ns IS NOT NULL AND style <> 'mark' GROUP BY ALL""",
    )


def run_document(folders, show, write):
    """Runs every block where `run.parquet` and `ranks.parquet` are the folders."""
    text = DOCUMENT.read_text()
    with tempfile.TemporaryDirectory() as here:
        for name, folder in folders.items():
            os.symlink(folder.resolve(), pathlib.Path(here) / name)
        os.chdir(here)
        database = duckdb.connect()
        python = {}
        count = 0

        def answer(block):
            nonlocal count
            language, code, before = block.groups()
            try:
                if language == "sql":
                    out = "".join(f"{found}" for found in answers(database, code))
                else:
                    with contextlib.redirect_stdout(io.StringIO()) as printed:
                        exec(code, python)
                    out = printed.getvalue()
            except Exception as error:
                sys.exit(f"check_parquet: {error}\nin\n{code}")
            count += 1
            out = out.rstrip() + "\n"
            if show:
                print(f"-- {language}\n{code}{out}")
            if before is None or not write:
                return block.group(0)
            return f"```{language}\n{code}```\n\n```text\n{out}```\n"

        made = BLOCK.sub(answer, text)
    if write:
        DOCUMENT.write_text(made)
    check(count >= 12, "the document has few queries")
    print(f"{count} queries of {DOCUMENT.name} work")


def answers(database, code):
    """What DuckDB shows for each statement that answers."""
    for statement in duckdb.extract_statements(code):
        if statement.type == duckdb.StatementType.SELECT:
            yield database.sql(statement.query)
        else:
            database.execute(statement.query)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--ranks", type=pathlib.Path)
    arguments.add_argument("--tally")
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    rows = compare(given.folder)
    print(f"DuckDB and pyarrow agree: {rows}")
    if given.tally:
        compare_tally(given.folder, given.tally)
    folders = {"run.parquet": given.folder, "ranks.parquet": given.ranks or given.folder}
    run_document(folders, given.show, given.write)


main()
