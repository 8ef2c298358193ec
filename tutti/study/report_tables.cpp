#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/study/describe.h"
#include "tutti/study/report.h"

namespace tutti::study {
namespace {

constexpr const char* kNothing = "-";

std::string fixed(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : kNothing;
}

std::string ranks_cell(const ScaleRow& row) {
  return fmt::format("{}{}", row.size().text(), row.oversubscribed ? "*" : "");
}

std::string batch_cell(int64_t samples) { return samples ? fmt::to_string(samples) : kNothing; }

std::string runs_cell(const ScaleRow& row) {
  return row.runs < row.all_runs() ? fmt::format("{} of {}", row.runs, row.all_runs())
                                   : fmt::to_string(row.runs);
}

std::string reach_cell(const ScaleRow& row, const StudyResult& result) {
  if (!result.target || row.runs == row.cut_off) return kNothing;
  if (row.open()) return fmt::format("(0/{}), {} unknown", row.runs, row.cut_off);
  if (row.reached == 0) return "not reached";
  const std::string text = number(row.reach_seconds);
  return row.reached == row.runs ? text : fmt::format("{} ({}/{})", text, row.reached, row.runs);
}

/// How a run ended, in words.
std::string outcome(const RunSummary& run, const StudyResult& result) {
  const std::optional<trace::Target>& target = result.target;
  if (!run.usable()) return run.stopped ? run.failure : "failed: " + run.failure;
  if (!target) return "done";
  if (!run.cut_off) return run.reach ? "target reached" : "target not reached";
  const auto& own = run.log.start.target;
  return fmt::format("ended at its own target{}, which says nothing about {}",
                     own ? " " + target_words(*own, result.judge) : "", target->value);
}

/// Returns the width on a terminal: bytes that start a character.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string aligned(const TextTable& table) {
  std::vector<size_t> widths;
  for (const std::string& heading : table.headings) widths.push_back(width(heading));
  for (const auto& row : table.rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i)
      text += (i ? "  " : "") + std::string(widths[i] - width(cells[i]), ' ') + cells[i];
    text += '\n';
  };
  line(table.headings);
  for (const auto& row : table.rows) line(row);
  return text;
}

std::string wrapped(const std::string& note, size_t columns) {
  std::string text = "- ";
  size_t used = 2;
  for (size_t at = 0; at < note.size();) {
    const size_t end = std::min(note.find_first_of(" \n", at), note.size());
    const size_t word = width(note.substr(at, end - at));
    if (used > 2 && used + 1 + word > columns) {
      text += "\n  ";
      used = 2;
    } else if (used > 2) {
      text += ' ';
      ++used;
    }
    text += note.substr(at, end - at);
    used += word;
    if (end < note.size() && note[end] == '\n') {
      text += "\n  ";
      used = 2;
    }
    at = end + 1;
  }
  return text + '\n';
}

TextTable speed_table(const StudyResult& result) {
  TextTable table{{"ranks", "runs", "batch", "global batch", "samples/s", "seconds an epoch",
                   "parallel speed-up", "efficiency"},
                  {}};
  for (const ScaleRow& row : result.rows)
    table.rows.push_back({ranks_cell(row), runs_cell(row), batch_cell(row.local_batch),
                          batch_cell(row.global_batch), number(row.samples_per_s.mean),
                          number(row.epoch_seconds), number(row.parallel),
                          percent(row.parallel_efficiency)});
  if (result.noise_measured()) {
    table.headings.emplace_back("critical batch");
    for (size_t i = 0; i < table.rows.size(); ++i)
      table.rows[i].push_back(fixed(result.rows[i].critical_batch.mean, 0));
  }
  return table;
}

TextTable learning_table(const StudyResult& result) {
  TextTable table{
      {"ranks", "seconds to target", "epochs", result.replayed() ? "device-hours" : "core-hours",
       "learning speed-up", "efficiency", "gain/s", "mean best"},
      {}};
  for (const ScaleRow& row : result.rows)
    table.rows.push_back({ranks_cell(row), reach_cell(row, result),
                          number(row.epochs_to_target.mean), number(row.core_seconds.mean / 3600),
                          number(row.learning), percent(row.learning_efficiency),
                          fixed(row.rate, 2), fixed(row.best.mean, 4)});
  if (result.tested()) {
    table.headings.emplace_back("mean test");
    for (size_t i = 0; i < table.rows.size(); ++i)
      table.rows[i].push_back(fixed(result.rows[i].test.mean, 4));
  }
  return table;
}

TextTable identity_table(const StudyResult& result) {
  TextTable table{
      {"ranks", "learning speed-up", "= parallel speed-up", "x epochs factor", "x rest"}, {}};
  for (const ScaleRow& row : result.rows)
    table.rows.push_back({ranks_cell(row),
                          result.target && !row.reached && !row.open() && row.missed()
                              ? "not reached"
                              : fixed(row.learning.value, 2),
                          fixed(row.parallel.value, 2), fixed(row.epochs_factor, 3),
                          fixed(row.remainder, 3)});
  return table;
}

TextTable step_table(const StudyResult& result) {
  TextTable table{
      {"ranks", "step ms", "compute", "exposed communication", "waiting for data", "other"}, {}};
  for (const ScaleRow& row : result.rows) {
    const auto part = [&](double ms) {
      return std::isfinite(ms) ? fmt::format("{} ({:.0f} %)", number(ms), 100 * ms / row.step.total)
                               : std::string(kNothing);
    };
    table.rows.push_back({ranks_cell(row), number(row.step.total), part(row.step.compute),
                          part(row.step.comm_exposed), part(row.step.data_wait),
                          part(row.step.other)});
  }
  return table;
}

TextTable arrivals_table(const StudyResult& result) {
  TextTable table{{"ranks", "steps", "waiting ms a step", "of it for late ranks", "last most often",
                   "in steps", "late by ms"},
                  {}};
  for (const ScaleRow& row : result.rows) {
    const Lateness& late = row.arrivals;
    if (late.steps > 0)
      table.rows.push_back(
          {ranks_cell(row), fmt::to_string(late.steps), number(late.waited_ms),
           number(late.waited_for_late_ms),
           late.latest_rank < 0 ? kNothing : fmt::format("rank {}", late.latest_rank),
           percent(late.latest_share), number(late.latest_ms)});
  }
  return table;
}

TextTable runs_table(const StudyResult& result) {
  TextTable table{{"ranks", "repeat", "seed", "samples/s", "seconds an epoch", "seconds to target",
                   "epochs", "best", "result"},
                  {}};
  for (const RunSummary& run : result.runs) {
    const trace::RunStart& start = run.log.start;
    const bool missed = result.target && run.usable() && !run.reach && !run.cut_off;
    const std::string reach = run.reach ? number(run.reach->wall_seconds)
                              : missed  ? "not reached"
                                        : kNothing;
    table.rows.push_back({run.size().text(), run.repeat ? fmt::to_string(run.repeat) : kNothing,
                          fmt::to_string(start.seed), number(run.samples_per_s),
                          number(run.epoch_seconds), reach,
                          run.reach ? number(run.reach->epoch) : kNothing, fixed(run.best, 4),
                          outcome(run, result)});
    if (result.tested()) table.rows.back().push_back(fixed(run.test, 4));
  }
  if (result.tested()) table.headings.emplace_back("test set");
  return table;
}

std::string terminal_report(const StudyResult& result) {
  std::string text = result.title.empty() ? "Scaling study" : result.title;
  if (result.mode != "one size")
    text += fmt::format("; {} scaling", result.mode);
  else if (result.rows.size() == 1)  // failed runs have rows, too
    text += "; one number of ranks";
  if (const auto usable =
          std::ranges::find_if(result.runs, [](const RunSummary& run) { return run.usable(); });
      usable != result.runs.end() && !usable->log.start.machine.empty())
    text += '\n' + usable->log.start.machine;
  text += result.disturbances.empty() ? "\n" : "\n\n";
  for (const std::string& note : result.disturbances) text += wrapped(note, 98);
  text += "\nHow fast it trains\n" + aligned(speed_table(result));
  if (result.target)
    text +=
        fmt::format("\nHow soon it has learned: {}\n", target_words(*result.target, result.judge)) +
        aligned(learning_table(result));
  const auto any = [&](auto condition) { return std::ranges::any_of(result.rows, condition); };
  if (result.rows.size() > 1 &&
      any([](const ScaleRow& row) { return std::isfinite(row.remainder); }))
    text += "\nWhy learning gains less or more than training\n" + aligned(identity_table(result));
  if (any([](const ScaleRow& row) { return std::isfinite(row.step.compute); }))
    text += "\nWhere the time of a step goes, ms\n" + aligned(step_table(result));
  if (const TextTable samples = samples_table(result); !samples.rows.empty())
    text += "\nWhere samples came from\n" + aligned(samples);
  if (any([](const ScaleRow& row) { return std::isfinite(row.epoch_seconds.half_width); }))
    text += "\n± and [low, high]: 90 % intervals over repeats\n";
  if (any([](const ScaleRow& row) { return row.oversubscribed; }))
    text += "* oversubscribed: more threads than cores\n";
  if (any([](const ScaleRow& row) { return !row.spatial.empty(); }))
    text += "4/2x2: 4 ranks, of which 2x2 share each sample\n";
  if (!result.notes.empty()) text += '\n';
  for (const std::string& note : result.notes) text += wrapped(note, 98);
  return text;
}

}  // namespace tutti::study
