#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/study/report.h"

namespace tutti::study {
namespace {

constexpr const char* kNothing = "-";

int decimals_for(double value) {
  const double size = std::abs(value);
  return size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

/// About four digits, or "-" for what was not measured.
std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals_for(value)) : kNothing;
}
std::string fixed(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : kNothing;
}
std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", 100 * share) : kNothing;
}

/// Mean with the half width of its interval where there is one.
std::string number(const Spread& s) {
  if (!std::isfinite(s.half_width)) return number(s.mean);
  const int decimals = decimals_for(s.mean);
  return fmt::format("{:.{}f} ±{:.{}f}", s.mean, decimals, s.half_width, decimals);
}

std::string number(const Ratio& r) {
  if (!std::isfinite(r.low)) return fixed(r.value, 2);
  return fmt::format("{:.2f} ±{:.2f}", r.value, (r.high - r.low) / 2);
}

std::string ranks_cell(const ScaleRow& row) {
  return fmt::format("{}{}", row.ranks, row.oversubscribed ? "*" : "");
}

std::string runs_cell(const ScaleRow& row) {
  return row.failed ? fmt::format("{} of {}", row.runs, row.runs + row.failed)
                    : fmt::to_string(row.runs);
}

std::string reach_cell(const ScaleRow& row, const StudyResult& result) {
  if (!result.target || row.runs == 0) return kNothing;
  if (row.reached == 0) return "not reached";
  const std::string text = number(row.reach_seconds);
  return row.reached == row.runs ? text : fmt::format("{} ({}/{})", text, row.reached, row.runs);
}

/// Width on a terminal: bytes that start a character.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

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

/// Breaks a note at spaces so that it fits the terminal.
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

}  // namespace

TextTable scaling_table(const StudyResult& result) {
  TextTable table{{"ranks", "runs", "samples/s", "epoch s", "S_par", "E_par", "to target s",
                   "epochs", "S_learn", "E_learn", "L_rate", "best"},
                  {}};
  for (const ScaleRow& row : result.rows)
    table.rows.push_back(
        {ranks_cell(row), runs_cell(row), number(row.samples_per_s.mean), number(row.epoch_seconds),
         number(row.parallel), percent(row.parallel_efficiency), reach_cell(row, result),
         number(row.epochs_to_target.mean), number(row.learning), percent(row.learning_efficiency),
         fixed(row.rate, 2), fixed(row.best.mean, 4)});
  return table;
}

TextTable identity_table(const StudyResult& result) {
  TextTable table{{"ranks", "S_learn", "= S_par", "x epochs factor", "x remainder"}, {}};
  for (const ScaleRow& row : result.rows)
    table.rows.push_back(
        {ranks_cell(row),
         row.runs && result.target && !row.reached ? "not reached" : fixed(row.learning.value, 2),
         fixed(row.parallel.value, 2), fixed(row.epochs_factor, 3), fixed(row.remainder, 3)});
  return table;
}

TextTable step_table(const StudyResult& result) {
  TextTable table{{"ranks", "step ms", "compute", "exposed comm", "data wait", "other"}, {}};
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

TextTable runs_table(const StudyResult& result) {
  TextTable table{{"ranks", "repeat", "seed", "local batch", "global batch", "samples/s", "epoch s",
                   "to target s", "epochs", "best", "result"},
                  {}};
  for (const RunSummary& run : result.runs) {
    const RunStart& start = run.log.start;
    const std::string reach = run.reach                       ? number(run.reach->wall_seconds)
                              : result.target && run.usable() ? "not reached"
                                                              : kNothing;
    std::string outcome = run.failure.substr(0, run.failure.find('\n'));
    if (run.usable())
      outcome = !result.target ? "done" : run.reach ? "target reached" : "target not reached";
    table.rows.push_back(
        {fmt::to_string(run.ranks()), run.repeat ? fmt::to_string(run.repeat) : kNothing,
         fmt::to_string(start.seed), fmt::to_string(start.local_batch),
         fmt::to_string(start.global_batch), number(run.samples_per_s), number(run.epoch_seconds),
         reach, run.reach ? number(run.reach->epoch) : kNothing, fixed(run.best, 4), outcome});
  }
  return table;
}

std::string terminal_report(const StudyResult& result) {
  std::string text = result.title.empty() ? "Scaling study" : result.title;
  text += fmt::format("; {} scaling", result.mode);
  if (result.target)
    text += fmt::format("; target {} {} {}", result.target->metric,
                        result.target->higher_is_better ? ">=" : "<=", result.target->value);
  if (const auto usable = std::find_if(result.runs.begin(), result.runs.end(),
                                       [](const RunSummary& run) { return run.usable(); });
      usable != result.runs.end() && !usable->log.start.machine.empty())
    text += '\n' + usable->log.start.machine;
  text += "\n\n" + aligned(scaling_table(result));
  if (std::any_of(result.rows.begin(), result.rows.end(),
                  [](const ScaleRow& row) { return row.oversubscribed; }))
    text += "* oversubscribed: more threads than cores\n";
  if (std::any_of(result.rows.begin(), result.rows.end(),
                  [](const ScaleRow& row) { return std::isfinite(row.epoch_seconds.half_width); }))
    text += "± 90 % interval over repeats\n";
  if (result.target)
    text +=
        "\nlearning speed-up = parallel speed-up x epochs factor x remainder (evaluation, "
        "start-up)\n" +
        aligned(identity_table(result));
  text += "\nwhere a step's time goes, ms\n" + aligned(step_table(result));
  if (!result.notes.empty()) text += '\n';
  for (const std::string& note : result.notes) text += wrapped(note, 118);
  return text;
}

}  // namespace tutti::study
