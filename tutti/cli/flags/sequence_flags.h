#pragma once
// Flags of `tutti data generate` for sequences: click logs, texts, pairs, trajectories, vibrations.

#include <vector>

#include "tutti/cli/flags/flags.h"
#include "tutti/generate/clicks.h"
#include "tutti/generate/protein/protein.h"
#include "tutti/generate/text.h"
#include "tutti/generate/token_pairs.h"
#include "tutti/generate/vibrations.h"

namespace tutti::cli {

/// The variables that the flags set.
struct SequenceSpecs {
  generate::ClickSpec& clicks;
  generate::SentenceSpec& text;
  generate::SequenceSpec& pairs;
  generate::ChainSpec& chain;
  generate::VibrationSpec& vibrations;
};

std::vector<Flag> sequence_flags(const SequenceSpecs& specs);

}  // namespace tutti::cli
