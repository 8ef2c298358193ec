#pragma once
// Flags of `tutti data generate` for texts and sequences.

#include <vector>

#include "tutti/cli/flags.h"
#include "tutti/data/generate/text.h"
#include "tutti/data/generate/token_pairs.h"

namespace tutti {

/// Bound to members of both, which must outlive them.
std::vector<Flag> text_flags(data::SentenceSpec& text, data::SequenceSpec& pairs);

}  // namespace tutti
