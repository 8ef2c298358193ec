#pragma once
// Flags of `tutti data generate` for what is a sequence: click logs, texts, pairs, trajectories,
// vibrations.

#include <vector>

#include "tutti/cli/flags.h"
#include "tutti/data/generate/clicks.h"
#include "tutti/data/generate/protein/protein.h"
#include "tutti/data/generate/text.h"
#include "tutti/data/generate/token_pairs.h"
#include "tutti/data/generate/vibrations.h"

namespace tutti {

/// Where the flags' values go.
struct SequenceSpecs {
  data::ClickSpec& clicks;
  data::SentenceSpec& text;
  data::SequenceSpec& pairs;
  data::ChainSpec& chain;
  data::VibrationSpec& vibrations;
};

std::vector<Flag> sequence_flags(const SequenceSpecs& specs);

}  // namespace tutti
