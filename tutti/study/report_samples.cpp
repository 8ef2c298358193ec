// Shows where samples came from: caches, other nodes, files, and staging before the run.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tutti/study/report.h"

namespace tutti::study {
namespace {

struct LevelSum {
  int64_t samples = 0, bytes = 0;
  double seconds = 0;
};

/// Sums of one epoch's lines: an epoch may have several, because a run that ends writes one more.
using EpochLevels = std::map<std::string, LevelSum>;

std::map<int64_t, EpochLevels> levels_by_epoch(const trace::RunLog& log) {
  std::map<int64_t, EpochLevels> epochs;
  for (const trace::DataRecord& line : log.data)
    for (size_t l = 0; l < line.levels.size() && l < line.samples.size() && l < line.bytes.size() &&
                       l < line.seconds.size();
         ++l) {
      LevelSum& sum = epochs[line.epoch][line.levels[l]];
      sum.samples += line.samples[l];
      sum.bytes += line.bytes[l];
      sum.seconds += line.seconds[l];
    }
  return epochs;
}

/// Selects the first epochs, in which caches fill, and the last.
std::set<int64_t> shown_epochs(const std::map<int64_t, EpochLevels>& epochs) {
  constexpr size_t kFirst = 3;
  std::set<int64_t> shown;
  for (const auto& [epoch, levels] : epochs)
    if (shown.size() < kFirst) shown.insert(epoch);
  if (!epochs.empty()) shown.insert(epochs.rbegin()->first);
  return shown;
}

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

std::string waiting(const trace::RunLog& log, int64_t epoch) {
  const auto of = std::ranges::find(log.epochs, epoch, &trace::EpochRecord::epoch);
  return of == log.epochs.end() || !std::isfinite(of->data_wait_seconds)
             ? "-"
             : fmt::format("{:.2f}", of->data_wait_seconds);
}

void add_epoch(const std::string& ranks, const trace::RunLog& log, int64_t epoch,
               const EpochLevels& levels, TextTable& table) {
  int64_t all = 0;
  for (const auto& [level, sum] : levels) all += sum.samples;
  bool begins = true;
  for (const char* level : {"memory", "node", "peers", "files"}) {
    const auto found = levels.find(level);
    if (found == levels.end() || (found->second.samples == 0 && found->second.bytes == 0)) continue;
    const LevelSum& sum = found->second;
    table.rows.push_back({ranks, fmt::to_string(epoch), level,
                          all > 0 ? fmt::to_string(sum.samples) : "-",
                          all > 0 ? fmt::format("{:.1f} %", 100 * static_cast<double>(sum.samples) /
                                                                static_cast<double>(all))
                                  : "-",
                          mebibytes(sum.bytes), fmt::format("{:.2f}", sum.seconds),
                          begins ? waiting(log, epoch) : ""});
    begins = false;
  }
}

}  // namespace

TextTable samples_table(const StudyResult& result) {
  TextTable table{
      {"ranks", "epoch", "from", "samples", "share", "MiB", "readers' seconds", "waiting s"}, {}};
  for (const ScaleRow& row : result.rows) {
    const auto run = std::ranges::find_if(result.runs, [&](const RunSummary& one) {
      return one.usable() && one.size().text() == row.size().text() &&
             (!one.log.data.empty() || one.log.staging);
    });
    if (run == result.runs.end()) continue;
    const std::string ranks = row.size().text();
    if (run->log.staging)
      table.rows.push_back({ranks, "before", "staging",
                            fmt::format("{} files", run->log.staging->copied_files), "-",
                            mebibytes(run->log.staging->copied_bytes),
                            fmt::format("{:.2f}", run->log.staging->seconds), "-"});
    const auto epochs = levels_by_epoch(run->log);
    for (const int64_t epoch : shown_epochs(epochs))
      add_epoch(ranks, run->log, epoch, epochs.at(epoch), table);
  }
  return table;
}

}  // namespace tutti::study
