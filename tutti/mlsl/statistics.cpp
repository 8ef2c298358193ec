#include "tutti/mlsl/statistics.h"

#include <cerrno>
#include <fstream>

#include "tutti/base/own_file.h"

namespace tutti::mlsl {
namespace {
constexpr std::array<const char*, kEntities> kNames = {"IA", "OA", "GRAD", "INC"};
}

uint64_t Statistics::now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

Statistics::Call::Call(Statistics& statistics, size_t operation, Tally& tally)
    : statistics_(statistics), tally_(tally) {
  if (!statistics_.started_) return;
  begin_ = now();
  if (statistics_.last_ != 0) statistics_.compute_[operation] += begin_ - statistics_.last_;
}

Statistics::Call::~Call() {
  if (begin_ == 0) return;
  statistics_.last_ = now();
  tally_.cycles += statistics_.last_ - begin_;
}

void Statistics::isolate(Tally& tally, const std::function<void()>& exchange) {
  constexpr int kRuns = 10;
  constexpr int kWarmUp = 4;
  uint64_t sum = 0;
  for (int run = 0; run < kRuns; ++run) {
    const uint64_t begin = now();
    exchange();
    if (run >= kWarmUp) sum += now() - begin;
  }
  tally.isolated += sum / (kRuns - kWarmUp);
}

void Statistics::start() {
  started_ = enabled_;
  last_ = 0;
}

void Statistics::reset() {
  for (auto& [operation, entities] : tallies_)
    for (Tally& tally : entities) tally.starts = tally.bytes = tally.cycles = 0;
  compute_.clear();
  last_ = 0;
}

uint64_t Statistics::of_operation(size_t operation, Count count) const {
  uint64_t sum = 0;
  if (const auto at = tallies_.find(operation); at != tallies_.end())
    for (const Tally& tally : at->second) sum += tally.*count;
  return sum;
}

uint64_t Statistics::total(Count count) const {
  uint64_t sum = 0;
  for (const auto& [operation, entities] : tallies_) sum += of_operation(operation, count);
  return sum;
}

uint64_t Statistics::compute(size_t operation) const {
  const auto at = compute_.find(operation);
  return at == compute_.end() ? 0 : at->second;
}

uint64_t Statistics::total_compute() const {
  uint64_t sum = 0;
  for (const auto& [operation, cycles] : compute_) sum += cycles;
  return sum;
}

std::string Statistics::table(const std::vector<Line>& operations) const {
  std::string text =
      fmt::format("{:<24} {:<5} {:>10} {:>12} {:>12} {:>12} {:>8}\n", "operation", "what", "starts",
                  "KB/image", "Kcycles/im.", "isolated", "exposed");
  double all = 0;
  double all_isolated = 0;
  for (const auto& [operation, entities] : tallies_)
    for (size_t e = 0; e < kEntities; ++e) {
      const Tally& tally = entities[e];
      if (tally.starts == 0) continue;
      const Line line = operation < operations.size() ? operations[operation] : Line{};
      const auto starts = static_cast<double>(tally.starts);
      const double images = starts * static_cast<double>(line.samples);
      const auto cycles = static_cast<double>(tally.cycles);
      const double isolated = static_cast<double>(tally.isolated) * starts;
      all += cycles, all_isolated += isolated;
      text += fmt::format("{:<24} {:<5} {:>10} {:>12.3f} {:>12.3f} {:>12.3f} {:>8.2f}\n", line.name,
                          kNames[e], tally.starts, static_cast<double>(tally.bytes) / 1000 / images,
                          cycles / 1000 / images, isolated / 1000 / images,
                          isolated > 0 ? cycles / isolated : 0);
    }
  text += fmt::format(
      "total: {} bytes, {} Kcycles of communication, {} Kcycles of computation, exposed {:.2f}\n",
      total(&Tally::bytes), total(&Tally::cycles) / 1000, total_compute() / 1000,
      all_isolated > 0 ? all / all_isolated : 0);
  return text;
}

void Statistics::print() const {
  if (!enabled_ || file_.empty()) return;
  auto stream = output_stream(file_, std::ios::app);
  stream << table(lines_) << '\n';
  if (!stream.flush())
    throw IoError(fmt::format("{}: cannot be written: {}", file_, file_error(errno)));
}

}  // namespace tutti::mlsl
