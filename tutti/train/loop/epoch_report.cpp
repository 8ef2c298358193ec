// Reports an epoch in the record and the log, besides its times.

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/device/cpu/process_memory.h"
#include "tutti/split/stages.h"
#include "tutti/train/loop/job_time.h"
#include "tutti/train/loop/run_report.h"

namespace tutti::train {

void RunReport::report_stages() {
  const int64_t steps = run_.epoch.steps;
  if (run_.shape.grid.stages() == 1 || steps == 0) return;
  const auto stages = static_cast<size_t>(run_.shape.grid.stages());
  std::vector<double> sums(3 * stages);  // by stage: computed, waited, memory
  const auto own = static_cast<size_t>(run_.shape.grid.stage());
  sums[own] = run_.epoch.times.compute;
  sums[stages + own] = run_.epoch.times.comm_exposed;
  sums[2 * stages + own] = static_cast<double>(device::peak_resident_bytes());
  run_.comm.sum(sums);
  if (!run_.first()) return;
  trace::StagesRecord line{
      .epoch = (run_.step - 1) / run_.shape.steps_per_epoch() + 1,
      .step = run_.step,
      .micro_batches = run_.shape.accumulate,
      .bubble = split::pipeline_bubble(run_.shape.grid.stages(), run_.shape.accumulate)};
  std::string words;
  for (size_t stage = 0; stage < stages; ++stage) {
    const double of_step = 1e3 / static_cast<double>(run_.shape.grid.groups() * steps);
    line.compute_ms.push_back(sums[stage] * of_step);
    line.waited_ms.push_back(sums[stages + stage] * of_step);
    line.memory_bytes.push_back(sums[2 * stages + stage] / run_.shape.grid.groups());
    words += fmt::format("{}stage {} {:.1f} ms and {:.1f} ms, {:.0f} MiB", stage == 0 ? "" : "; ",
                         stage, line.compute_ms.back(), line.waited_ms.back(),
                         line.memory_bytes.back() / (1 << 20));
  }
  log::info("a step's computing, its waiting, and memory so far: {}", words);
  run_.reporter->record().append(std::move(line));
}

void RunReport::report_data() {
  if (!run_.spec.read_counts) return;
  const auto levels = run_.spec.read_counts->levels();
  std::vector<double> sums;
  for (const data::LevelCount& level : levels)
    for (const double x :
         {static_cast<double>(level.samples), static_cast<double>(level.bytes), level.seconds})
      sums.push_back(x);
  sums.push_back(static_cast<double>(run_.spec.read_counts->left_out()));
  run_.comm.sum(sums);
  trace::DataRecord line{
      .epoch = (run_.step + run_.shape.steps_per_epoch() - 1) / run_.shape.steps_per_epoch(),
      .step = run_.step,
      .left_out = static_cast<int64_t>(sums.back())};
  data_sums_.resize(sums.size());
  const auto since = [&](size_t i) { return sums[i] - data_sums_[i]; };
  std::string words;
  for (size_t l = 0; l < levels.size(); ++l) {
    line.levels.emplace_back(data::kReadLevels[l]);
    line.samples.push_back(static_cast<int64_t>(since(3 * l)));
    line.bytes.push_back(static_cast<int64_t>(since(3 * l + 1)));
    line.seconds.push_back(since(3 * l + 2));
    words += fmt::format("{}{} {} samples, {:.1f} MiB", l == 0 ? "" : "; ", data::kReadLevels[l],
                         line.samples.back(), since(3 * l + 1) / (1 << 20));
  }
  if (since(sums.size() - 1) > 0) line.reasons = new_reasons();
  data_sums_ = sums;
  if (!run_.first()) return;
  log::info("data since the last such line: {}{}", words,
            line.left_out > 0 ? fmt::format("; left out so far: {}", line.left_out) : "");
  run_.reporter->record().append(std::move(line));
}

std::vector<std::string> RunReport::new_reasons() {
  constexpr int kMostRanks = 64;  // ranks whose texts are gathered; the log has all of them
  std::vector<std::string> own = run_.spec.read_counts->reasons(), all;
  own.erase(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(reasons_recorded_));
  reasons_recorded_ += own.size();
  for (int r = 0; r < std::min(run_.comm.size(), kMostRanks); ++r) {
    const std::string texts =
        comm::broadcast_text(run_.comm, fmt::format("{}", fmt::join(own, "\n")), r);
    std::istringstream lines(texts);
    for (std::string text; std::getline(lines, text);)
      if (std::ranges::find(all, text) == all.end()) all.push_back(text);
  }
  return all;
}

void RunReport::report_compression() {
  const std::string line = run_.exchange().compression_line(std::exchange(run_.epoch.steps, 0));
  if (run_.first() && !line.empty()) log::info("{}", line);
}

void RunReport::report_machine(bool ends) {
  constexpr double kLeastSeconds = 1;  // shorter epochs share a line
  device::ProcessorTime time = processor_time_of_job(run_.comm, *watch_);
  if (!run_.first()) return;
  const device::ProcessorTime now = time;
  time -= machine_recorded_;
  if (time.seconds < kLeastSeconds && !ends) return;
  machine_recorded_ = now;
  const trace::MachineUse use = time.shares();
  double load = trace::kNotMeasured;
  std::ifstream("/proc/loadavg") >> load;
  run_.reporter->record().append(
      trace::MachineRecord{.epoch = (run_.step - 1) / run_.shape.steps_per_epoch() + 1,
                           .step = run_.step,
                           .seconds = use.seconds,
                           .other_work = use.other_work,
                           .steal = use.steal,
                           .throttled = use.throttled,
                           .load = load});
  if (!ends) return;
  for (const auto share :
       {&trace::MachineUse::other_work, &trace::MachineUse::steal, &trace::MachineUse::throttled}) {
    trace::MachineUse one;  // a line each, so that no line is long
    one.*share = now.shares().*share;
    if (const std::string sentence = trace::disturbance_sentence(one); !sentence.empty())
      log::info("{}", sentence);
  }
}

}  // namespace tutti::train
