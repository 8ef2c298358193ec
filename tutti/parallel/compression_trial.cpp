#include "tutti/parallel/compression_trial.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

CompressionTrial::CompressionTrial(int pairs) : pairs_(pairs) {
  CHECK(pairs >= 1, "{} pairs", pairs);
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
  std::vector<double> mine = seconds_;
  mine.push_back(report.codec_seconds);
  mine.push_back(comm::break_even_bandwidth(report));
  std::vector<double> all(mine.size() * static_cast<size_t>(communicator.size()));
  communicator.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  const auto of_rank = [&](size_t p, size_t i) { return all[p * mine.size() + i]; };

  std::vector<double> dense, compressed;
  size_t slowest = 0;
  const auto ranks = static_cast<size_t>(communicator.size());
  for (size_t step = 2; step < seconds_.size(); ++step) {
    double longest = 0;
    for (size_t p = 0; p < ranks; ++p) longest = std::max(longest, of_rank(p, step));
    (compressed_step(step) ? compressed : dense).push_back(longest);
  }
  for (size_t p = 1; p < ranks; ++p)
    if (of_rank(p, seconds_.size()) > of_rank(slowest, seconds_.size())) slowest = p;
  Verdict verdict{.dense_seconds = median(dense),
                  .compressed_seconds = median(compressed),
                  .break_even = of_rank(slowest, seconds_.size() + 1)};
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
