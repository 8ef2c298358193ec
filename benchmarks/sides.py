"""The two sides of a comparison as processes that stay alive and are told when to run (protocol: peers/serve.py)."""
import itertools
import json
import shlex
import statistics
import subprocess
import tempfile
import threading
import time

TARGET_RUN_S = 2.0  # long enough to be steady, short enough to interleave
PAUSE_S = 0.15  # until the idle side's threads have stopped spinning


class Failed(Exception):
    """A side that did not answer; the text names its command and its last words."""


class Side:
    """One training program under --serve. Use as a context manager. `limit`: seconds without an answer after which it is ended."""

    def __init__(self, command, limit=None):
        self._limit = limit
        self.command = [str(word) for word in command]
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.spawned = time.perf_counter()
        self._process = subprocess.Popen(
            [*self.command, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self.about = self._answer()
        if not self.about.get("ready"):
            raise self._failure("did not say that it is ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._tell("quit")
            self._process.wait(timeout=20)
        except (Failed, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def run(self, steps):
        """Runs `steps` steps; the answer has at least step_ms."""
        time.sleep(PAUSE_S)
        self._tell(f"run {steps}")
        return self._answer()

    def calibrate(self):
        """The number of steps that takes about TARGET_RUN_S."""
        step_s = statistics.median(self.run(3)["step_ms"]) / 1e3
        return max(3, round(TARGET_RUN_S / step_s))

    def _tell(self, text):
        try:
            self._process.stdin.write(text + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._failure("has ended") from None

    def _answer(self):
        watch = threading.Timer(self._limit or 1e6, self._process.kill)
        watch.daemon = True
        watch.start()
        try:
            for line in self._process.stdout:
                if line.lstrip().startswith("{"):  # a library may print its own lines before
                    return json.loads(line)
        finally:
            watch.cancel()
        raise self._failure("ended without an answer")

    def _failure(self, what):
        self._process.wait(timeout=20)
        self._errors.seek(0)
        last = self._errors.read().strip().splitlines()[-5:]
        return Failed("\n  ".join([f"{shlex.join(self.command)}: {what}", *last]))


def mean_step_ms(answer):
    return statistics.fmean(answer["step_ms"])


def interleave(sides, repeats, measure=mean_step_ms):
    """A B A B ...: `repeats` runs of each side, one after the other. Returns one list of `measure`s per side."""
    steps = [side.calibrate() for side in sides]
    figures = [[] for _ in sides]
    for _ in range(repeats):
        for side, count, list_ in zip(sides, steps, figures):
            list_.append(measure(side.run(count)))
    return figures


def fastest(command, axes, log, steps=None, limit=None):
    """Chooses the peer's fastest setting, one axis after the other: axes is a list of lists of flag lists. Returns the flags. With `steps`
    a setting is tried with one run of so many; `limit` as for Side."""
    chosen = [options[0] for options in axes]
    times = {}

    def step_ms(flags):
        key = tuple(itertools.chain(*flags))
        if key not in times:
            try:
                with Side([*command, *key], limit) as side:
                    count = steps or side.calibrate()
                    times[key] = min(mean_step_ms(side.run(count)) for _ in range(1 if steps else 3))
                log(f"  candidate {' '.join(map(str, key))}: {times[key]:.1f} ms")
            except Failed as error:
                times[key] = float("inf")
                log(f"  candidate {' '.join(map(str, key))} refused: {error}")
        return times[key]

    for i, options in enumerate(axes):
        chosen[i] = min(options, key=lambda option: step_ms([*chosen[:i], option, *chosen[i + 1 :]]))
    if step_ms(chosen) == float("inf"):
        raise Failed("no setting of the peer ran")
    return list(itertools.chain(*chosen))
