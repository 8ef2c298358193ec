#pragma once
// The flags of `tutti data generate` that configure a microscope.

#include <vector>

#include "tutti/cli/flags/flags.h"
#include "tutti/generate/microscopy/cbed.h"
#include "tutti/generate/microscopy/stem.h"

namespace tutti::cli {

/// Returns the flags of cbed and of stem; --crystal is kept in `cbed`. Both must outlive the flags.
std::vector<Flag> microscope_flags(generate::CbedSpec& cbed, generate::StemSpec& stem);

}  // namespace tutti::cli
