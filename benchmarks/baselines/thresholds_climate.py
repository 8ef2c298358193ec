#!/usr/bin/env python3
"""What thresholds find of cyclones and rivers: the baseline that a network has to beat.

  thresholds_climate.py TRAIN VALIDATION

TRAIN and VALIDATION are folders with x.npy, float32 [N,H,W,16], and y.npy, uint8 [N,H,W] (0 background,
1 tropical cyclone, 2 atmospheric river), as generate_climate writes them. A pixel is a cyclone where the
wind at 850 hPa and the water vapour of the column (TMQ) both pass a threshold. Another is a river where
the transport, TMQ times wind, and the TMQ above its average along the parallel do. The four thresholds are
those of the best mean IoU on TRAIN, found on grids, and stand before any network was trained. Printed: the
mean IoU on VALIDATION as DeepCAM defines it (the mean over samples of the mean over classes; a class
that is neither there nor predicted counts as 1) and each class's, of background everywhere and of the
thresholds. Needs numpy only.
"""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs
import argparse
import itertools

import numpy as np

TMQ, U850, V850 = 0, 1, 2
WINDS = (15, 17, 19, 21, 24, 27, 30)  # m/s
VAPOURS = (35, 40, 45, 50, 55)  # kg/m^2
TRANSPORTS = (400, 500, 600, 700, 800, 1000)  # kg/m/s
EXCESSES = (6, 8, 10, 12, 15, 18)  # kg/m^2
BATCH = 8


def ious(predicted, truth):
    """[samples, classes]"""
    columns = []
    for c in range(3):
        p, t = predicted == c, truth == c
        both, either = (p & t).sum((1, 2)), (p | t).sum((1, 2))
        columns.append(np.where(either > 0, both / np.maximum(either, 1), 1.0))
    return np.stack(columns, 1)


def predictors(folder):
    """TMQ, wind, TMQ above its parallel's average, truth; all [N,H,W]."""
    x, y = np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "y.npy")
    vapour = np.array(x[..., TMQ])
    wind = np.hypot(x[..., U850], x[..., V850])
    return vapour, wind, vapour - vapour.mean(2, keepdims=True), y


def segmented(vapour, wind, excess, thresholds):
    wind_least, vapour_least, transport_least, excess_least = thresholds
    river = (vapour * wind >= transport_least) & (excess >= excess_least)
    cyclone = (wind >= wind_least) & (vapour >= vapour_least)
    return np.where(cyclone, 1, np.where(river, 2, 0)).astype(np.uint8)


def best_thresholds(vapour, wind, excess, y):
    def score(thresholds):
        sums = [ious(segmented(vapour[i:i + BATCH], wind[i:i + BATCH], excess[i:i + BATCH], thresholds),
                     y[i:i + BATCH]).mean(1).sum() for i in range(0, len(y), BATCH)]
        return sum(sums) / len(y)

    # Those of cyclones and those of rivers in turn: each changes the other's best hardly.
    best = (17, 45, 400, 8)
    for _ in range(2):
        best = max((pair + best[2:] for pair in itertools.product(WINDS, VAPOURS)), key=score)
        best = max((best[:2] + pair for pair in itertools.product(TRANSPORTS, EXCESSES)), key=score)
    return best


def report(name, predicted, truth):
    values = ious(predicted, truth)
    mean, each = values.mean(), values.mean(0)
    print(f"{name:24s} mean IoU {mean:.4f}  background {each[0]:.3f}  cyclone {each[1]:.3f}  river {each[2]:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=pathlib.Path)
    parser.add_argument("validation", type=pathlib.Path)
    options = parser.parse_args()
    best = best_thresholds(*predictors(options.train))
    vapour, wind, excess, truth = predictors(options.validation)
    shares = [100 * (truth == c).mean() for c in range(3)]
    print("{} validation samples of {} x {}; background {:.2f} %, cyclone {:.2f} %, river {:.2f} %".format(
        *truth.shape, *shares))
    report("background everywhere", np.zeros_like(truth), truth)
    report("thresholds", segmented(vapour, wind, excess, best), truth)
    print(f"  wind {best[0]} m/s, TMQ {best[1]} kg/m^2; transport {best[2]} kg/m/s, TMQ above average {best[3]} kg/m^2")


if __name__ == "__main__":
    main()
