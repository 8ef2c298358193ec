"""40 everyday mistakes, and things that look like mistakes and are none, with the expected answers; see trials."""
import json
import os
import re
import struct
import zipfile

from trial import KNOWN, LATTICES, NOT_DAMAGED, RUN, Skip, arrays, collector, h5py, metric, near, np, samples, write

TRIALS = []
trial = collector(TRIALS)
TRAIN = "$P train run.toml --max-steps 2 --output-dir o"


XY = ("x: from x axis 0", "y: from y axis 0")
EPOCH = "$P train run.toml --output-dir o"
COUNTED = r"done: 6 steps"  # an epoch of 24 samples, in batches of 4


# Paths and folders

@trial("paths", "mkdir elsewhere; cd elsewhere && $P train ../project/run.toml --output-dir ../o", ok=[COUNTED], limit=60)
def paths_of_a_project(folder):
    """A project folder with configuration and data; the command is typed in another folder."""
    write(folder, arrays(XY, dir="measured"), "project/run.toml")
    samples(folder / "project/measured")


@trial("paths", "$P train project/run.toml --output-dir o", ok=[COUNTED], limit=60)
def paths_of_an_include(folder):
    """An included file in another folder sets data.dir, from where it lies itself."""
    write(folder, arrays(XY, dir="../store/measured"), "common/base.toml")
    write(folder, 'include = "../common/base.toml"\n[run]\nseed = 4\n', "project/run.toml")
    samples(folder / "store/measured")


@trial("paths", "cd / && $P eval \"$OLDPWD\"/project/o/config.toml --weights \"$OLDPWD\"/project/o", ok=[r"8 samples, accuracy \d"], limit=60,
       before=["cd project && $P data generate lattices set --train 48 --test 8", "cd project && $P train run.toml --max-steps 2 --output-dir o"])
def paths_of_a_saved_run(folder):
    """A run's own config.toml is evaluated from the root folder; its data set was named by a relative path."""
    write(folder, LATTICES.replace('"lattices"', '"lattices"\ndir = "set"').replace("generate_train = 48\ngenerate_test = 8\n", ""), "project/run.toml")


@trial("paths", TRAIN, error=[r"data\.dir", r"measured", r"project|run\.toml|looked for|starts at"], codes=(1, 2),
       never=NOT_DAMAGED)
def paths_with_a_typing_error(folder):
    """data.dir names a folder that is not there."""
    write(folder, arrays(XY, dir="mesured"))
    samples(folder / "measured")


@trial("folders", EPOCH + " --data-dir 'plate [A1] {x,y}*'", ok=[COUNTED], limit=60)
def folder_of_brackets(folder):
    """Brackets, braces and a star in the name of the data folder, beside a folder that such a pattern would match."""
    write(folder, arrays(XY, files=("*.npz",)))
    samples(folder / "plate [A1] {x,y}*")
    samples(folder / "plate A {x,y}z", count=8)


@trial("folders", EPOCH + " --data-dir 'price $USD $$ 5'", ok=[COUNTED], limit=60)
def folder_of_dollars(folder):
    """Dollar signs in the name of the data folder, given by a flag in quotes."""
    write(folder, arrays(XY))
    samples(folder / "price $USD $$ 5")


@trial("folders", TRAIN + " --set data.dataset=cifar10 --data-dir digits",
       error=[r"cifar", r"digits", r"data_batch|\.bin|mnist|expected|does not|no file"], codes=(1, 2))
def folder_of_another_set(folder):
    """The data folder of CIFAR-10 holds MNIST."""
    write(folder)
    (folder / "digits").mkdir()
    for name, magic, size in (("train-images-idx3-ubyte", 0x803, 784), ("train-labels-idx1-ubyte", 0x801, 1)):
        head = struct.pack(">II", magic, 10) + (struct.pack(">II", 28, 28) if size > 1 else b"")
        (folder / "digits" / name).write_bytes(head + bytes(10 * size))


@trial("folders", "$P train run.toml --max-steps 2 --output-dir notes.txt; c=$?; cat notes.txt; exit $c",
       error=[r"notes\.txt", r"not a folder|not a directory|is a file|a file|no folder|cannot be created|cannot create", r"my notes"])
def output_is_a_file(folder):
    """The output folder is the name of a file that is there; the file stays as it is."""
    write(folder)
    (folder / "notes.txt").write_text("my notes\n")


@trial("folders", "$P train run.toml --set data.generate_train=4000000 --output-dir o",
       error=[r"holds a run|is a run|a run lies", r"--resume", r"--fresh"], codes=(2,),
       before=[TRAIN])
def output_is_occupied(folder):
    """The output folder holds a run already, and the new one would take minutes to make its data: refused before."""
    write(folder)


@trial("folders", "$P train run.toml --max-steps 2 --output-dir /proc/runs/o",
       error=[r"/proc/runs", r"no such file|denied|cannot|not permitted|read-only"], codes=(1, 2))
def output_cannot_be_made(folder):
    """The output folder lies where nothing can be made, also by root."""
    write(folder)


@trial("limits", "$P config run.toml >/dev/full", error=[r"space left|cannot (be )?writ|standard output|stdout"], codes=(1,))
def output_is_full(folder):
    """The configuration is printed to a disk that is full."""
    write(folder)


@trial("limits", "ulimit -f 8; " + TRAIN, error=[r"\bo/", r"too large|limit|space|ulimit"], codes=(1,), limit=60)
def limit_of_file_size(folder):
    """A limit on the size of files, which a checkpoint does not fit."""
    write(folder)


@trial("limits", "ulimit -Sn 48; " + TRAIN, ok=[r"done: 2 steps"], error=[r"ulimit|open files|RLIMIT|descriptors", r"48|-n"], never=NOT_DAMAGED,
       limit=60)
def limit_of_open_files(folder):
    """A text in 120 files, and a soft limit of 48 open files (the hard one is higher)."""
    (folder / "texts").mkdir()
    for i in range(120):
        (folder / f"texts/train{i:03}.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 4)
    write(folder, RUN + '[data]\ndataset = "text"\ndir = "."\ntrain_files = ["texts"]\nvalidation = 0.1\nwindow = 16\n'
          '[model]\nname = "gpt2"\ndepth = 1\nwidth = 16\nheads = 2\n[optimizer]\nname = "adamw"\nlr = 0.001\n')


@trial("signals", "env --block-signal=HUP,USR2 $P train run.toml --output-dir o >log 2>&1 & p=$!\n"
       "for i in $(seq 300); do grep -q 'step 2/' log && break; sleep 0.1; done; kill -USR2 $p; wait $p; c=$?; cat log; ls o/checkpoints; exit $c",
       error=[r"stop|resume|signal", r"step_0"], codes=(75,), limit=60, spoken=False)
def signals_blocked(folder):
    """Started with SIGHUP and SIGUSR2 blocked, as some launchers do; then asked to stop by SIGUSR2."""
    write(folder, LATTICES.replace("epochs = 1", "epochs = 4000"))


@trial("signals", "$PYTHON -c 'import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
       "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\nos.execvp(sys.argv[1], sys.argv[1:])' "
       "$P train run.toml --max-steps 2 --ranks 2 --output-dir o",
       ok=[r"2 rank|done: 2 steps"], limit=60)
def signals_of_a_daemon(folder):
    """Started by a daemon that ignores SIGCHLD and blocks all signals; two ranks."""
    write(folder)


# The machine's and the job's variables

def same_threads(printed, folder):
    plain = re.search(r"threads a rank\D+(\d+)", (folder / "plain.out").read_text())
    bound = re.search(r"threads a rank\D+(\d+)", printed)
    return None if plain and bound and plain[1] == bound[1] else f"threads a rank: {bound and bound[1]}, without the variables {plain and plain[1]}"


@trial("variables", "OMP_PLACES=threads OMP_PROC_BIND=spread $P doctor --no-measure", ok=[same_threads], before=["$P doctor --no-measure >plain.out"])
def omp_places(folder):
    """OMP_PLACES and OMP_PROC_BIND of a site's profile: as many threads as without them."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("this needs two cores")


@trial("variables", "env SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 SLURM_LOCALID=0 SLURM_NODEID=1 "
       "SLURM_STEP_NUM_NODES=2 SLURM_NNODES=2 SLURM_STEP_TASKS_PER_NODE='2(x2)' SLURM_MPI_TYPE=none " + TRAIN,
       error=[r"srun|slurm", r"--mpi|pmi|mpirun"], limit=60)
def slurm_without_mpi(folder):
    """A step of srun with four tasks, whose MPI does not know of it: refused before anything is written."""
    write(folder)


@trial("variables", "TUTTI_OPTIMIZER_LEARNINGRATE=0.5 TUTTI_EPOCH=9 $P config run.toml",
       ok=[r"TUTTI_OPTIMIZER_LEARNINGRATE", r"TUTTI_EPOCH\b", r"unknown|no key|no such|not known"],
       error=[r"TUTTI_OPTIMIZER_LEARNINGRATE", r"TUTTI_EPOCH\b"], codes=(2,))
def variables_misspelt(folder):
    """Two variables of which the program knows none: both are named, so that nobody believes that they count."""
    write(folder)


@trial("keys", TRAIN, error=[r"run\.toml:\d+", r"optimizer\.learning_rate", r"optimizer\.lr\b|tutti config|configuration\.md", r"warmup_ratio"],
       codes=(2,))
def keys_of_other_frameworks(folder):
    """learning_rate and warmup_ratio, as other frameworks call them: both are named at once."""
    write(folder, LATTICES + "[optimizer]\nlearning_rate = 0.1\n[schedule]\nwarmup_ratio = 0.1\n")


@trial("flags", TRAIN + " --num-gpus 2", error=[r"num.gpus", r"\b(no|without|not|only|CPU)\b.{0,80}\bGPUs?\b|CPU"], codes=(2,))
def flags_of_gpus(folder):
    """--num-gpus: the message says that there is no part for GPUs."""
    write(folder)


@trial("flags", TRAIN + " --lr 0,05", error=[r"0,05", r"\blr\b", r"number|point"], codes=(2,))
def flags_of_a_decimal_comma(folder):
    """A decimal comma."""
    write(folder)


@trial("values", TRAIN + " --target 85", error=[r"\b85\b", r"target", r"fraction|0\.85|between 0|at most 1|above 1|0 to 1"], codes=(2,))
def values_in_percent(folder):
    """A target accuracy of 85, meant as percent, which no run can reach."""
    write(folder)


@trial("values", "$P config run.toml --set comm.timeout_s=5minutes --set 'data.cache.memory=2 Gigabyte'",
       ok=[r"timeout_s\s*=\s*300\b", r"memory\s*=\s*(2147483648|2000000000|\"2 Gi?B\")"],
       error=[r"timeout_s|cache\.memory", r"5minutes|2 Gigabyte", r"min|GiB|MiB|suffix|unit"], codes=(2,))
def values_of_other_units(folder):
    """Units that are written out: understood, or refused with the words that are."""
    write(folder)


@trial("values", "$P config run.toml --set 'data.transforms=image: crop pad 4, flip x, divide 255'",
       ok=[r'transforms\s*=\s*\[\s*"image: crop pad 4, flip x, divide 255"\s*\]'], error=[r"data\.transforms", r"quot|bracket|\[\"|\[\\?\""],
       codes=(2,))
def values_with_commas(folder):
    """--set of a list of one string that has commas in it."""
    write(folder)


@trial("values", TRAIN, error=[r"run\.toml:\d+", r"nesterov", r"true|false"], codes=(2,))
def values_of_truth(folder):
    """A truth value in quotes."""
    write(folder, LATTICES + '[optimizer]\nnesterov = "False"\n')


@trial("values", TRAIN, error=[r"run\.toml:1\b", r"=|expected|YAML|TOML"], codes=(2,))
def values_as_yaml(folder):
    """The configuration is written as YAML."""
    write(folder, "run:\n  epochs: 1\n  threads: 1\ndata:\n  dataset: lattices\n")


@trial("values", TRAIN, error=[r"a\.toml", r"b\.toml", r"include|itself|circle|cycle|again"], codes=(2,))
def values_that_include_themselves(folder):
    """Two files that include each other."""
    write(folder, 'include = "a.toml"\n')
    write(folder, 'include = "b.toml"\n' + LATTICES, "a.toml")
    write(folder, 'include = "a.toml"\n', "b.toml")


def is_json(printed, folder):
    json.loads((folder / "plan.json").read_text())


@trial("json", "DNNL_VERBOSE=2 ONEDNN_VERBOSE=all TUTTI_LOG_LEVEL=debug $P model show resnet8 --json >plan.json 2>log; "
       "c=$?; cat plan.json; exit $c", ok=[is_json])
def json_with_variables(folder):
    """JSON for a program, while variables make oneDNN and the log talk."""


@trial("networks", TRAIN, error=[r'"?Conv2d"?', r"\bconv\b", r"run\.toml:\d+", r"dense"], codes=(2,))
def layers_of_pytorch(folder):
    """Layers called as in PyTorch: the message lists the types that there are."""
    write(folder, arrays(XY, layers='[[model.layer]]\ntype = "Conv2d"\nchannels = 4\nkernel = 3\n[[model.layer]]\ntype = "dense"\n'))
    samples(folder)


@trial("networks", TRAIN, error=[r"\bwide\b|\bsum\b", r"\b8\b", r"\b16\b", r"run\.toml:\d+"], codes=(2,))
def layers_that_do_not_fit(folder):
    """A residual sum of 8 and 16 channels."""
    conv = '[[model.layer]]\ntype = "conv"\nname = "%s"\nchannels = %d\nkernel = 3\npad = 1\n'
    write(folder, arrays(XY, layers=conv % ("slim", 8) + conv % ("wide", 16) + '[[model.layer]]\ntype = "add"\nname = "sum"\ninput = ["slim", "wide"]\n'
                         '[[model.layer]]\ntype = "dense"\n'))
    samples(folder)


@trial("weights", "$P train lenet.toml --max-steps 4 --output-dir o --resume", error=[r"resnet8", r"lenet", r"model\.name|network|model"],
       codes=(1, 2), before=[TRAIN], never=NOT_DAMAGED)
def weights_of_another_network(folder):
    """A run is resumed with another network."""
    write(folder)
    write(folder, LATTICES.replace("resnet8", "lenet").replace("width = 4\n", ""), "lenet.toml")


@trial("weights", "$P eval run.toml --weights best.pt", error=[r"best\.pt", r"torch|pickle|PyTorch", r"safetensors"],
       never=NOT_DAMAGED + (r"\d{12,}",))
def weights_of_torch(folder):
    """A .pt file, as torch.save writes it."""
    write(folder)
    with zipfile.ZipFile(folder / "best.pt", "w") as file:
        file.writestr("best/data.pkl", b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01.")
        file.writestr("best/version", "3\n")
        file.writestr("best/data/0", bytes(64))


# Data that do not fit what the configuration says

@trial("data", TRAIN, error=[r"\by\b", r"a\.npz", r"NaN|not finite|no number|finite", r"\b5\b|missing|quarantine"], limit=60, never=NOT_DAMAGED)
def data_with_nan(folder):
    """The target of one sample is NaN."""
    y = np.arange(24, dtype="f4")
    y[5] = np.nan
    write(folder, arrays(XY))
    samples(folder, y=y)


@trial("data", "$P train run.toml --epochs 1 --output-dir o", error=[r"\by\b", r"\b5\b", r"0 to 4|0 \.\. 4|from 0|beyond|5 classes|no class"],
       limit=60, never=NOT_DAMAGED)
def data_with_labels_from_one(folder):
    """Labels 1 to 5 where 5 classes are said, which count from 0."""
    write(folder, arrays((XY[0], "y: from y axis 0 classes 5"), layers='[[model.layer]]\ntype = "dense"\n'))
    samples(folder, y=(1 + np.arange(24) % 5).astype("i8"))


@trial("data", TRAIN, error=[r"\bx\b", r"\by\b", r"\b24\b", r"\b22\b"], limit=60, never=NOT_DAMAGED)
def data_of_two_lengths(folder):
    """24 pictures and 22 targets."""
    write(folder, arrays(XY))
    samples(folder, y=np.arange(22, dtype="f4"))


def one_sided(count=40):
    """Truth of a rare class, and the logits that the known network gives."""
    truth = (np.arange(count) % 5 == 0).astype("f4")
    logit = np.where(np.arange(count) % 3 == 0, 2.5, -1.5).astype("f4")
    return truth, logit


def f1_is_right(printed, folder):
    truth, logit = one_sided()
    hit = ((logit > 0) & (truth > 0)).sum()
    return metric("f1", 2 * hit / ((logit > 0).sum() + truth.sum()))(printed, folder)


@trial("results", "$P eval run.toml --weights o --set run.metric=f1", ok=[f1_is_right], limit=60,
       before=["$P train run.toml --max-steps 1 --output-dir o --set run.metric=f1"])
def results_of_a_rare_class(folder):
    """f1 of a rare class, of a network whose logits are known, is that of scikit-learn: 2 TP / (2 TP + FP + FN)."""
    truth, logit = one_sided()
    x = np.zeros((40, 1, 4, 4), "f4")
    x[:, 0, 1, 2] = logit
    samples(folder, count=40, x=x, y=truth)
    write(folder, arrays(XY, more='validation_files = ["a.npz"]\n[model]\ntask = "regress"\n[loss]\npointwise = "bce_with_logits"',
                         layers=KNOWN % (1, "ones", "0.0")))


TEMPERATURES = [281.5, 290.25, 300.0, 262.75, 315.5, 271.0, 299.5, 305.25, 283.0, 294.0, 310.75, 268.25, 287.5, 301.0, 276.25, 292.5, 308.0, 265.5,
                297.75, 285.25, 303.5, 279.0, 289.5, 312.25]


def mae_in_kelvin(printed, folder):
    return metric("mae", sum(abs(t - 280) for t in TEMPERATURES) / len(TEMPERATURES))(printed, folder)


def predicts_kelvin(_, folder):
    found, truth = (np.load(folder / f"seen/{name}.npy") for name in ("prediction", "truth"))
    if not near(float(found.mean()), 280):
        return f"prediction.npy has the mean {found.mean():.6g}, not 280"
    return None if np.allclose(np.sort(truth.ravel()), np.sort(np.array(TEMPERATURES)), atol=0.01) else "truth.npy is not in kelvin"


@trial("results", "$P eval run.toml --weights o --save-predictions seen", limit=60, before=["$P train run.toml --max-steps 1 --output-dir o"],
       ok=[mae_in_kelvin, predicts_kelvin])
def results_in_units_of_the_data(folder):
    """A target that is normalised (mean 280, deviation 12): mae and predictions are in kelvin. The network says the mean of all."""
    samples(folder, y=np.array(TEMPERATURES, "f4"))
    write(folder, arrays(XY, more='transforms = ["y: normalise mean 280 std 12"]'))


def rows_are_indexed(_, folder):
    """Some index that is written beside the predictions leads from each row to its sample."""
    x = np.load(folder / "a.npz")["x"].reshape(24, -1).sum(1)
    with h5py.File(folder / "out.h5") as file:
        found = {}
        file.visititems(lambda name, node: found.update({name: node[()]}) if isinstance(node, h5py.Dataset) else None)
    rows = next((v.reshape(6) for v in found.values() if v.dtype.kind == "f" and v.size == 6), None)
    if rows is None:
        return "out.h5 has no 6 predictions"
    lists = [v.reshape(6) for v in found.values() if v.dtype.kind in "iu" and v.size == 6]
    beside = folder / "out.h5.files.txt"
    if beside.exists():
        lists.append(np.array([int(line.rsplit("\t", 1)[-1]) for line in beside.read_text().splitlines()]))
    fits = any(len(i) == 6 and 0 <= i.min() and i.max() < 24 and np.allclose(x[i], rows, atol=1e-3) for i in lists)
    return None if fits else "no index tells which sample a row is"


@trial("results", "$P infer run.toml --weights o --split validation --output out.h5", ok=[rows_are_indexed], limit=60,
       before=["$P train run.toml --max-steps 1 --output-dir o"])
def results_with_an_index(folder):
    """Predictions for a quarter of the samples, taken by chance: which row is which sample is written beside them."""
    samples(folder)
    write(folder, arrays(XY, more="validation = 6", layers=KNOWN % (1, "ones", "0.0")))


@trial("results", TRAIN + " --target 30 --set run.metric=mae", ok=[r"mae", r"reached"], limit=60,
       never=(r"target[^\n]{0,30}(above|at least|≥)", r"\bnan\b"))
def results_where_less_is_better(folder):
    """A target of mae that is above it (11.5): less is better, so it is reached, and nothing says the reverse."""
    samples(folder)
    write(folder, arrays(XY))


@trial("studies", "$P study run.toml --ranks 0 --repeats 0 --output-dir s", error=[r"--ranks|ranks", r"\b0\b", r"at least|1|positive|allowed"],
       codes=(2,))
def study_over_nothing(folder):
    """A study of no ranks and no repeats."""
    write(folder)
