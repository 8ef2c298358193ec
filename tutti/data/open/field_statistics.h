#pragma once
// Computes statistics of a field's values over a whole data set.

#include <string_view>

#include "tutti/data/dataset.h"

namespace tutti::data {

/// Reads the whole set once (about 0.1 s for CIFAR-10). Channels are indices of the stored field's
/// axis `channels`. Sums are in double precision, exact for bytes.
FieldStatistics field_statistics(const Dataset& dataset, std::string_view field, int channels = 0);

}  // namespace tutti::data
