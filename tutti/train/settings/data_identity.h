#pragma once
// Describes a run's data as a line of text: a resumed run and all ranks of a job must have the same
// data.

#include <string>

#include "tutti/data/dataset.h"

namespace tutti::train {

/// Returns, for example, "10000 samples of u8 image 3x32x32, u8 label in 10 classes, checksum
/// 0123456789abcdef". The checksum covers all fields: all samples up to 64 MiB, and evenly spaced
/// samples of a larger set.
std::string data_identity(const data::Dataset& dataset);

/// Does the same for the statistics of all fields: "statistics 0123456789abcdef".
std::string statistics_identity(const data::Dataset& dataset);

}  // namespace tutti::train
