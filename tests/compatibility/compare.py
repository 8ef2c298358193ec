#!/usr/bin/env python3
"""Compares what two versions of the program say, read and keep. Ends with 1 and a line for each difference.

compare.py values FILE RESOLVED: the value of each key of a configuration is the resolved one; a path may have got the folder before it.
compare.py tensors FOLDER FOLDER: the tensors of the first folder's .safetensors files are in the second's, to rounding.
compare.py losses FILE RECORD: the losses in FILE are those of the record since its last start, to rounding.
compare.py arrays FILE FILE: two .npy files of f32, to rounding.
compare.py columns FILE FILE: the columns of a CSV file are in another one.
compare.py print RECORD STEP: what FILE of `losses` holds, of what came after a step. compare.py config MANIFEST: the configuration that it keeps.
"""
import array
import csv
import json
import pathlib
import struct
import sys
import tomllib

wrong = []


def near(what, old, new):
    """Another processor adds in another order: 1e-3 of the largest number is a thousand times that, and a tenth of a lost momentum."""
    bound = 1e-3 * max(map(abs, old), default=0) + 1e-6
    far = max((abs(a - b) for a, b in zip(old, new)), default=0)
    if len(old) != len(new) or not far <= bound:
        wrong.append(f"{what}: {len(old)} and {len(new)} numbers, {far} apart, more than {bound}")


def leaves(table, name=""):
    for key, value in table.items():
        yield from leaves(value, f"{name}{key}.") if isinstance(value, dict) else [(name + key, value)]


def values(file, resolved):
    now = dict(leaves(tomllib.loads(pathlib.Path(resolved).read_text())))
    for key, value in leaves(tomllib.loads(pathlib.Path(file).read_text())):
        path = isinstance(value, str) and (str(now.get(key)).endswith("/" + value) or (key, value) == ("data.dir", ""))
        if now.get(key) != value and not path:
            wrong.append(f"{key} was {value} and is now {now.get(key)}")


def tensors_of(path):
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: (e["dtype"], data[end + e["data_offsets"][0]:end + e["data_offsets"][1]]) for name, e in header.items()}


def tensors(old, new):
    files = sorted(pathlib.Path(old).rglob("*.safetensors"))
    if not files:
        wrong.append(f"{old} has no tensors")
    for file in files:
        other = pathlib.Path(new) / file.relative_to(old)
        there = tensors_of(other) if other.exists() else {}
        for name, (dtype, data) in tensors_of(file).items():
            if name not in there or there[name][0] != dtype:
                wrong.append(f"{other} has no tensor {name} of {dtype}")
            elif dtype == "F32":
                near(f"{other}, {name}", array.array("f", data), array.array("f", there[name][1]))
            elif name.endswith("/clock"):  # numbers of 64 bits
                near(f"{other}, {name}", array.array("d", data), array.array("d", there[name][1]))
            elif data != there[name][1]:
                wrong.append(f"{other}, {name}: other numbers")


def losses_of(record, step=0):
    lines = [json.loads(line) for line in pathlib.Path(record).read_text().splitlines()]
    start = max(i for i, line in enumerate(lines) if line["event"] == "run_start")
    return [(f"{line['event']} {line['step']}", line["loss"]) for line in lines[start:] if line["event"] in ("step", "eval") and line["step"] > step]


def losses(file, record):
    old = [line.rsplit(" ", 1) for line in pathlib.Path(file).read_text().splitlines()]
    new = losses_of(record)
    if not old or [what for what, _ in old] != [what for what, _ in new]:
        wrong.append(f"{record} has {new}")
    near(record, [float(loss) for _, loss in old], [loss for _, loss in new])


def arrays(old, new):
    near(new, *(array.array("f", pathlib.Path(path).read_bytes()[128:]) for path in (old, new)))


def columns(old, new):
    rows = [list(csv.DictReader(open(path, newline=""))) for path in (old, new)]
    for before, now in zip(*rows):
        wrong.extend(f"{new}: {name} was {value} and is now {now.get(name)}" for name, value in before.items() if now.get(name) != value)
    if not rows[0] or len(rows[0]) != len(rows[1]):
        wrong.append(f"{new} has {len(rows[1])} rows, not {len(rows[0])}")


verb, *given = sys.argv[1:]
if verb == "print":
    print("\n".join(f"{what} {loss}" for what, loss in losses_of(given[0], int(given[1]))))
elif verb == "config":
    print(json.loads(pathlib.Path(given[0]).read_text())["config"], end="")
else:
    {"values": values, "tensors": tensors, "losses": losses, "arrays": arrays, "columns": columns}[verb](*given)
print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
sys.exit(bool(wrong))
