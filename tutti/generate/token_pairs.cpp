#include "tutti/generate/token_pairs.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/data/text/token_file.h"

namespace tutti::generate {

std::vector<int32_t> generate_sequence(const SequenceSpec& spec, int64_t index) {
  Rng rng(spec.seed, Purpose::generate, static_cast<uint64_t>(index));
  std::vector<int32_t> sequence(1 + rng.below(static_cast<uint32_t>(spec.longest)));
  for (int32_t& symbol : sequence)
    symbol = static_cast<int32_t>(rng.below(static_cast<uint32_t>(spec.symbols)));
  return sequence;
}

std::vector<int32_t> asked_of(const SequenceSpec& spec, std::vector<int32_t> sequence) {
  if (spec.task == "reverse")
    std::ranges::reverse(sequence);
  else if (spec.task == "sort")
    std::ranges::sort(sequence);
  else if (spec.task != "copy")
    throw ConfigError(
        fmt::format("'{}' is no task of sequences: there are copy, reverse and sort", spec.task));
  return sequence;
}

void write_sequences(const std::filesystem::path& source, const std::filesystem::path& target,
                     const SequenceSpec& spec, int64_t first, int64_t count) {
  const auto end = static_cast<int32_t>(spec.symbols);
  const data::TokenHeader header{.token_bytes = data::token_bytes_of(spec.symbols + 1),
                                 .vocabulary = spec.symbols + 1,
                                 .end_token = end};
  data::TokenWriter sources(source, header), targets(target, header);
  const auto write = [&](data::TokenWriter& writer, std::vector<int32_t> sequence) {
    sequence.insert(sequence.begin(), end);
    writer.write(sequence);
  };
  for (int64_t i = first; i < first + count; ++i) {
    const std::vector<int32_t> sequence = generate_sequence(spec, i);
    write(sources, sequence);
    write(targets, asked_of(spec, sequence));
  }
  sources.close(1);
  targets.close(1);
}

}  // namespace tutti::generate
