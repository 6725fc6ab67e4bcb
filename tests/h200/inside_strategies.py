#!/usr/bin/env python3
"""How leaders get room, and what that costs: `tests/h200/inside_strategies.py HETRACE PROGRAMS OUT`.

The table of hip-analyzer's slides (two runs 2.07 / 1.50, padded, one global cursor 3.73 / 1.96, cursor for each compute unit
2.47 / 1.60, chunks 1.79 / 1.33, chunks for each compute unit 1.77 / 1.32; mean / median of kernel time by that without) on this GPU:
`--inside-strategy`. `two-runs` is refused, and so is not in it.

PROGRAMS is a folder with programs of HeCBench by name, as for inside_price.py, whose functions this uses: both lie in one folder.
Each runs as it is and with each strategy in each mode (MODES, "blocks paths"; blocks is what the slides record). Only the first
launch of each kernel records, in a pool of BUFFER (4G). For each:

- x: time of the launches that recorded by that of the same launches in the bare run, by CUPTI;
- bytes a record: of what the pool has, places that are only begun and heads of leaders with it;
- lost: records that found no room; `full`: the pool was, so that this x is not of a whole recording and in no mean. Of `padded`
  losses are of leaders whose place was full;
- same: as many PASS and FAIL as bare, and, unless something was lost or the pool is large (READ, 64M), how often lanes ran each
  block by `tally --inside` is the same with all strategies in both modes.

ONLY names programs, STRATEGIES strategies, SECONDS_LEFT (260) ends it: what was not reached is missing. Prints a line for each run,
then a table for each mode, and leaves OUT/inside_strategies.json. `--self-test` needs no GPU and no hetrace."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import inside_price as price

STRATEGIES = os.environ.get("STRATEGIES", "chunks chunks-per-sm global-cursor sm-cursor padded").split()
MODES = os.environ.get("MODES", "blocks paths").split()
BUFFER = os.environ.get("BUFFER", "4G")
READ = int(os.environ.get("READ", 64 << 20))
# The shortest first, so that as many as can be are in what time there is.
ORDER = ("present adam libor epistasis jenkins-hash stencil1d split laplace3d lombscargle projectile rainflow keogh perplexity "
         "lebesgue bitonic-sort aidw wyllie chacha20 haccmk scatterAdd s8n fsm bilateral md5hash ga").split()


def lanes(hetrace, trace):
    """By kernel: how often lanes ran each of its blocks."""
    done = subprocess.run([hetrace, "tally", "--inside", "--json", trace], capture_output=True, text=True, timeout=100)
    if done.returncode:
        raise RuntimeError(done.stderr[-300:])
    return counted(json.loads(done.stdout))


def counted(tables):
    return {row["kernel"]: [(block["block"], block["lanes"]) for block in row["blocks"]] for row in tables.get("inside", [])}


def one(hetrace, program, folder, bare, mode, strategy):
    options = ["--inside", "*@0..0", "--inside-mode", mode, "--inside-strategy", strategy, "--inside-buffer", BUFFER]
    inside = price.traced(hetrace, options, program, folder)
    found = price.compare(bare, inside)
    found["is_full"] = any("did not record" in note for note in found["notes"])
    if not found["lost"] and 0 < found["pool"] <= READ:
        found["lanes"] = lanes(hetrace, os.path.join(folder, "trace"))
    return found


def alike(found, first):
    """Whether lanes ran blocks as often as in the first recording that has it. Blocks are in any order there."""
    return "lanes" not in found or {k: sorted(v) for k, v in found["lanes"].items()} == {k: sorted(v) for k, v in first.items()}


def summary(rows):
    for mode in MODES:
        print(f"| {mode} | " + " | ".join(STRATEGIES) + " |")
        for row in rows:
            cells = (cell(row.get(mode, {}).get(strategy)) for strategy in STRATEGIES)
            print(f"| {row['program']} | " + " | ".join(cells) + " |")
        # Programs that every strategy has recorded as a whole: only these can be compared.
        whole = [row for row in rows if all(is_whole(row.get(mode, {}).get(strategy)) for strategy in STRATEGIES)]
        if not whole:
            print("no program that each strategy has recorded as a whole")
            continue
        for what, value in (("mean", statistics.mean), ("median", statistics.median), ("most", max)):
            cells = (f"{value([row[mode][strategy]['twins'] for row in whole]):.3f}" for strategy in STRATEGIES)
            print(f"| {what} of {len(whole)} | " + " | ".join(cells) + " |")
        sizes = ([row[mode][strategy]["bytes_per_record"] for row in whole] for strategy in STRATEGIES)
        print("| bytes a record, median | " + " | ".join(f"{statistics.median([s for s in size if s] or [0]):.1f}" for size in sizes) + " |")


def is_whole(found):
    return bool(found and found["twins"] and not found["is_full"])


def cell(found):
    if not found or not found["twins"]:
        return "-"
    marks = (" full" if found["is_full"] else "") + (f" lost {found['lost']}" if found["lost"] else "")
    return f"{found['twins']:.2f}{marks}"


def self_test():
    made = lambda x, full, lost: {"twins": x, "is_full": full, "lost": lost, "bytes_per_record": 20.0}  # noqa: E731
    assert cell(made(1.5, True, 3)) == "1.50 full lost 3" and cell(None) == "-" and not is_whole(made(2.0, True, 1))
    tables = {"inside": [{"kernel": "k", "blocks": [{"block": 1, "lanes": 5}, {"block": 0, "lanes": 32}]}]}
    assert alike({"lanes": counted(tables)}, {"k": [(0, 32), (1, 5)]}) and not alike({"lanes": counted(tables)}, {"k": [(0, 32)]})
    rows = [{"program": name, **{mode: {s: made(x, False, 0) for s in STRATEGIES} for mode in MODES}} for name, x in (("a", 1.5), ("b", 2.5))]
    summary(rows)
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    hetrace, programs, out = sys.argv[1:4]
    os.makedirs(out, exist_ok=True)
    only, rows = os.environ.get("ONLY", "").split(), []
    end = time.monotonic() + float(os.environ.get("SECONDS_LEFT", "260"))
    with tempfile.TemporaryDirectory() as folder:
        for name in only or ORDER:
            path = os.path.join(programs, name)
            if not os.path.exists(path) or time.monotonic() > end:
                continue
            row, first = {"program": name}, None
            rows.append(row)
            try:
                program = [path, *price.ARGUMENTS.get(name, "").split()]
                bare = price.traced(hetrace, [], program, folder)
                row["bare_ms"] = sum(total for _, total in bare["times"].values()) / 1e6
                for mode, strategy in ((m, s) for m in MODES for s in STRATEGIES):
                    if time.monotonic() > end:
                        break
                    found = one(hetrace, program, folder, bare, mode, strategy)
                    row.setdefault(mode, {})[strategy] = found
                    first = first or found.get("lanes")
                    found["same"] = found["same"] and alike(found, first or {})
                    found.pop("lanes", None)
                    shown = {"x": round(found["twins"] or 0, 3), "bytes_a_record": round(found["bytes_per_record"] or 0, 1),
                             "pool_mib": round(found["pool"] / 2**20, 1), "lost": found["lost"], "full": found["is_full"],
                             "same": found["same"], "seconds": found["seconds"]}
                    print(name, mode, strategy, json.dumps(shown), flush=True)
            except Exception as error:  # noqa: BLE001
                row["error"] = repr(error)[-300:]
                print(name, row["error"], flush=True)
            with open(os.path.join(out, "inside_strategies.json"), "w") as file:
                json.dump(rows, file, indent=1)
    summary(rows)
    return None


main()
