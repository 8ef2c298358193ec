#pragma once
// Which data a run trains on, as a line of text: a resumed run and all ranks of a job must have the
// same.

#include <string>

#include "tutti/data/dataset.h"

namespace tutti {

/// "10000 samples of u8 image 3x32x32, u8 label in 10 classes, checksum 0123456789abcdef". The
/// checksum is over all fields: of all samples up to 64 MiB, of a larger set over samples at even
/// distances.
std::string data_identity(const data::Dataset& dataset);

/// The same of the statistics of all fields: "statistics 0123456789abcdef".
std::string statistics_identity(const data::Dataset& dataset);

}  // namespace tutti
