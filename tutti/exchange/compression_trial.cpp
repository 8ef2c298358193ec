#include "tutti/exchange/compression_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::exchange {
namespace {

// D C C D D C C D ...
bool compressed_step(size_t step) { return (step + 1) / 2 % 2 == 1; }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

constexpr int kMostNumbers = static_cast<int>(comm::Communicator::kMostCombined / sizeof(double));

// Combines the numbers of all ranks by `take(mine, theirs)`.
template <class Take>
void combine_numbers(comm::Communicator& communicator, std::vector<double>& numbers, Take take) {
  communicator.combine(std::as_writable_bytes(std::span(numbers)),
                       [&](std::byte* mine, const std::byte* theirs) {
                         // Bytes of messages are not aligned.
                         std::vector<double> a(numbers.size()), b(numbers.size());
                         std::memcpy(a.data(), mine, a.size() * sizeof(double));
                         std::memcpy(b.data(), theirs, b.size() * sizeof(double));
                         take(a, b);
                         std::memcpy(mine, a.data(), a.size() * sizeof(double));
                       });
}

}  // namespace

CompressionTrial::CompressionTrial(int pairs) : pairs_(pairs) {
  CHECK(1 <= pairs && steps() <= kMostNumbers, "{} pairs", pairs);
}

bool CompressionTrial::compressed() const {
  CHECK(!complete(), "the trial is over");
  return compressed_step(seconds_.size());
}

void CompressionTrial::record(double blocked_seconds, double caller_seconds) {
  CHECK(!complete(), "the trial is over");
  seconds_.push_back(blocked_seconds + caller_seconds);
}

void CompressionTrial::combine(comm::Communicator& communicator) {
  if (seconds_.empty()) return;
  combine_numbers(communicator, seconds_, [](auto& mine, const auto& theirs) {
    for (size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], theirs[i]);
  });
}

void CompressionTrial::restore(std::vector<double> seconds) {
  CHECK(static_cast<int>(seconds.size()) <= steps(), "{} of {} steps", seconds.size(), steps());
  seconds_ = std::move(seconds);
}

CompressionTrial::Verdict CompressionTrial::decide(comm::Communicator& communicator,
                                                   const comm::CompressionReport& report) {
  CHECK(complete(), "{} of {} steps recorded", seconds_.size(), steps());
  combine(communicator);
  std::vector<double> codec{report.codec_seconds, comm::break_even_bandwidth(report)};
  combine_numbers(communicator, codec, [](auto& mine, const auto& theirs) {
    if (theirs[0] > mine[0]) mine = theirs;
  });

  std::vector<double> dense, compressed;
  for (size_t step = 2; step < seconds_.size(); ++step)
    (compressed_step(step) ? compressed : dense).push_back(seconds_[step]);
  Verdict verdict{.dense_seconds = median(dense),
                  .compressed_seconds = median(compressed),
                  .break_even = codec[1]};
  verdict.pays = verdict.compressed_seconds < verdict.dense_seconds;
  return verdict;
}

std::string CompressionTrial::Verdict::to_string(const std::string& compression) const {
  return fmt::format(
      "{}: dense blocks {:.3g} ms a step, {} blocks and codes {:.3g} ms; breaks even at {:.3g} "
      "GB/s ({:.3g} Gb/s) a rank",
      pays ? "on" : "off", dense_seconds * 1e3, compression, compressed_seconds * 1e3,
      break_even * 1e-9, break_even * 8e-9);
}

}  // namespace tutti::exchange
