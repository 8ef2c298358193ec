#pragma once
// Flags of `tutti data generate` for sequences: click logs, texts, pairs, trajectories, vibrations.

#include <vector>

#include "tutti/cli/flags/flags.h"
#include "tutti/generate/clicks.h"
#include "tutti/generate/protein/protein.h"
#include "tutti/generate/text.h"
#include "tutti/generate/token_pairs.h"
#include "tutti/generate/vibrations.h"

namespace tutti {

/// The variables that the flags set.
struct SequenceSpecs {
  data::ClickSpec& clicks;
  data::SentenceSpec& text;
  data::SequenceSpec& pairs;
  data::ChainSpec& chain;
  data::VibrationSpec& vibrations;
};

std::vector<Flag> sequence_flags(const SequenceSpecs& specs);

}  // namespace tutti
