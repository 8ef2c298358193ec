#include "tutti/exchange/compression_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti {
namespace {

// D C C D D C C D ...
bool compressed_step(size_t step) { return (step + 1) / 2 % 2 == 1; }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// The ranks combine the seconds of each step, then codec seconds and the bandwidth at which
// compression breaks even.
constexpr int kMoreNumbers = 2;
constexpr int kMostNumbers = static_cast<int>(comm::Communicator::kMostCombined / sizeof(double));

// Keeps the longer time for each step, and the last two numbers from the rank that codes longer.
void take_slowest(std::byte* mine, const std::byte* theirs, size_t count) {
  std::vector<double> a(count), b(count);  // because bytes of messages are not aligned
  std::memcpy(a.data(), mine, count * sizeof(double));
  std::memcpy(b.data(), theirs, count * sizeof(double));
  const size_t steps = count - kMoreNumbers;
  for (size_t i = 0; i < steps; ++i) a[i] = std::max(a[i], b[i]);
  if (b[steps] > a[steps]) std::copy_n(b.data() + steps, kMoreNumbers, a.data() + steps);
  std::memcpy(mine, a.data(), count * sizeof(double));
}

}  // namespace

CompressionTrial::CompressionTrial(int pairs) : pairs_(pairs) {
  CHECK(1 <= pairs && steps() + kMoreNumbers <= kMostNumbers, "{} pairs", pairs);
}

bool CompressionTrial::compressed() const {
  CHECK(!complete(), "the trial is over");
  return compressed_step(seconds_.size());
}

void CompressionTrial::record(double blocked_seconds, double caller_seconds) {
  CHECK(!complete(), "the trial is over");
  seconds_.push_back(blocked_seconds + caller_seconds);
}

CompressionTrial::Verdict CompressionTrial::decide(comm::Communicator& communicator,
                                                   const comm::CompressionReport& report) const {
  CHECK(complete(), "{} of {} steps recorded", seconds_.size(), steps());
  std::vector<double> mine = seconds_;  // after combine(): times of the slowest ranks
  mine.push_back(report.codec_seconds);
  mine.push_back(comm::break_even_bandwidth(report));
  communicator.combine(std::as_writable_bytes(std::span(mine)),
                       [count = mine.size()](std::byte* ours, const std::byte* theirs) {
                         take_slowest(ours, theirs, count);
                       });

  std::vector<double> dense, compressed;
  for (size_t step = 2; step < seconds_.size(); ++step)
    (compressed_step(step) ? compressed : dense).push_back(mine[step]);
  Verdict verdict{.dense_seconds = median(dense),
                  .compressed_seconds = median(compressed),
                  .break_even = mine.back()};
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

}  // namespace tutti
