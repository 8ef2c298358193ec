"""What a trial is made of, for trial_mistakes.py and trial_files.py; see trials."""
import importlib
import json
import math
import re


class Skip(Exception):
    """The input cannot be made here."""


class Library:
    """A package that is imported when it is first used: where it is missing, only the trials that need it are not run."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, member):
        return getattr(importlib.import_module(self._name), member)


h5py, netCDF4, np, tifffile = (Library(name) for name in ("h5py", "netCDF4", "numpy", "tifffile"))


class Trial:
    """make(folder) writes the input; `before` are commands that must end with 0; `command` is what is tried ($P is the program).

    ok: what exit code 0 must show (None: it must not end with 0); error: what the message must name with an exit code in `codes` (None: it
    must end with 0). Both are regular expressions, or functions of (printed, folder) that return what is wrong.
    """

    Skip = Skip

    def __init__(self, name, kind, what, make, command, ok, error, codes, never, before, limit, spoken):
        self.name, self.kind, self.what, self.make, self.command = name, kind, what, make, command
        self.ok, self.error, self.codes, self.never = ok, error, set(codes), never
        self.before, self.limit, self.spoken = before, limit, spoken


def collector(trials):
    """A decorator that adds a trial; the function makes the input, its docstring says what is tried."""
    def trial(kind, command, ok=None, error=None, codes=(1, 2), never=(), before=(), limit=20, spoken=True):
        def add(make):
            trials.append(Trial(make.__name__, kind, " ".join(make.__doc__.split()), make, command, ok, error, codes, never, before, limit, spoken))
            return make
        return add
    return trial


NOT_DAMAGED = (r"damaged", r"corrupt", r"fetch (it|the file) again", r"download (it|the file) again")

RUN = """[run]
epochs = 1
threads = 1
log_every = 1
[batch]
local = 4
[plan]
measure = false
"""

LATTICES = RUN + """[data]
dataset = "lattices"
generate_train = 48
generate_test = 8
[model]
name = "resnet8"
width = 4
"""

# A network of one layer that is known without training: each weight 1 (or 0), each bias the given number, learning rate 0.
KNOWN = """[optimizer]
lr = 0.0
momentum = 0.0
[[model.layer]]
type = "flatten"
[[model.layer]]
type = "dense"
outputs = %d
init = "%s"
bias_init = "constant"
bias_value = %s
"""


def arrays(fields, files=("a.npz",), more="", dir=".", layers=KNOWN % (1, "zeros", "0.0")):
    """A configuration that reads files of one's own, which also judge it where `more` does not say otherwise."""
    if "validation" not in more:
        more += f"\nvalidation_files = {json.dumps(list(files))}"
    quoted = ", ".join(json.dumps(f) for f in fields)
    return RUN + f"""[data]
dataset = "arrays"
dir = {json.dumps(dir, ensure_ascii=False)}
train_files = {json.dumps(list(files), ensure_ascii=False)}
fields = [{quoted}]
{more}
{layers}"""


def write(folder, text=LATTICES, name="run.toml"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def samples(folder, name="a.npz", count=24, y=None, **more):
    """x [count, 1, 4, 4], and y a number a sample."""
    x = np.random.default_rng(5).normal(size=(count, 1, 4, 4)).astype("f4")
    y = np.arange(count, dtype="f4") if y is None else y
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    np.savez(folder / name, **{"x": x, "y": y, **more})
    return np.load(folder / name)


STATS = "$P data stats s.toml --output stats.json; c=$?; cat stats.json 2>/dev/null; exit $c"


def near(a, b, tolerance=1e-3):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-6)


def numbers(printed):
    return [float(n) for n in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", printed, re.I)]


def holds(*expected, tolerance=1e-3):
    """All of these numbers are printed, as rounded as one likes below the tolerance."""
    def check(printed, _):
        found = numbers(printed)
        lacks = [e for e in expected if not any(near(e, n, tolerance) for n in found)]
        return f"expected {', '.join(f'{e:.6g}' for e in lacks)}" if lacks else None
    return check


def inspect(name):
    return f"$P data inspect {name}"


def stats(folder, field, *files):
    """Writes the configuration of STATS."""
    (folder / "s.toml").write_text(f'[data]\ndataset = "arrays"\ndir = "."\ntrain_files = {json.dumps(list(files))}\nfields = [{json.dumps(field)}]\n')


def ramp(shape, step=0.5, start=3.25):
    return (start + step * np.arange(int(np.prod(shape)))).reshape(shape)


def channel_means(samples):
    """Means of [samples, channels, ...]."""
    samples = np.asarray(samples, "f8")
    return [samples[:, c].mean() for c in range(samples.shape[1])]


def keep(folder, *expected):
    """What kept_means or kept_range is to find; several lists where several answers are right."""
    (folder / "expected.json").write_text(json.dumps([[float(v) for v in e] for e in expected]))


def kept_range(printed, folder):
    return holds(*json.loads((folder / "expected.json").read_text())[0])(printed, folder)


def kept_means(_, folder):
    """stats.json has the kept means of channels, or their one mean where it takes all for one channel (of bytes perhaps divided by 255)."""
    def lists(node, name=""):
        if isinstance(node, dict):
            for key, value in node.items():
                yield from lists(value, key)
        elif name == "mean":
            yield node if isinstance(node, list) else [node]

    answers = json.loads((folder / "expected.json").read_text())
    answers += [[sum(a) / len(a)] for a in answers]
    found = list(lists(json.loads((folder / "stats.json").read_text())))
    for mean in found:
        for scale in (1, 255):
            if any(len(mean) == len(a) and all(near(m * scale, e, 1e-4) for m, e in zip(mean, a)) for a in answers):
                return None
    return f"expected means {', '.join(f'{e:.6g}' for e in answers[0])}, found {found}"


def metric(name, expected):
    """`NAME VALUE` or `NAME VALUE %` is printed with this value, to the digits that are printed."""
    def check(printed, _):
        found = re.findall(rf'\b{name}"?[ :=]+([0-9.]*[0-9](?:e[-+]?[0-9]+)?)( ?%)?', printed)
        if any(abs(float(v) / (100 if percent else 1) - expected) <= max(6e-4, 2e-3 * abs(expected)) for v, percent in found):
            return None
        return f"expected {name} {expected:.6g}, found {' '.join(v + p for v, p in found) or 'none'}"
    return check
