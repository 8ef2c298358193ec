#pragma once
// The convolutions of registered models, as the libraries of a device's maker are asked for them.

#include <string>
#include <vector>

#include "tutti/device/libraries.h"

namespace tutti::test {

/// Returns the samples of a batch with which a model's convolutions are asked for: what one GPU
/// could be given.
int64_t batch_of(const std::string& model);

/// Returns the distinct convolutions of a model's training graph, with its own input, in the
/// graph's order; each as the product y in f32. One dimension is asked for as two, the first of
/// extent 1. Transposed ones are the convolutions whose products they exchange.
std::vector<device::LibraryConvolution> convolutions_of(const std::string& model);

/// Returns "n128 16x32x32 > 16x32x32 window 3x3 pad 1x1": samples, x, y; what is not said is 1, or
/// no padding. "pad 0x0+1x1": before and after.
std::string words_of(const device::LibraryConvolution& convolution);

}  // namespace tutti::test
