#include "tutti/study/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "tutti/study/notes.h"

namespace tutti::study {
namespace {

/// Four digits; two for values below a hundredth.
int decimals_for(double value) {
  const double size = std::abs(value);
  if (size > 0 && size < 0.01) return 1 - static_cast<int>(std::floor(std::log10(size)));
  return size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

constexpr int kMostDecimals = 6;  // smaller numbers get an exponent

std::string setting(const Configuration& settings, const std::string& key) {
  const auto at = settings.find(key);
  return at == settings.end() ? "" : at->second;
}

bool scales_rate(const Configuration& settings) {
  const std::string scaling = setting(settings, "schedule.scale_with_batch");
  return !scaling.empty() && scaling != "\"none\"";
}

std::vector<const ScaleRow*> used_rows(const StudyResult& result) {
  std::vector<const ScaleRow*> rows;
  for (const ScaleRow& row : result.rows)
    if (row.runs > 0) rows.push_back(&row);
  return rows;
}

/// Returns "32 on 1 rank, 64 on 2 ranks", or just "64" if all sizes agree.
std::string per_size(const StudyResult& result,
                     const std::function<std::string(const ScaleRow&)>& get) {
  std::vector<std::string> parts;
  std::set<std::string> different;
  for (const ScaleRow* row : used_rows(result)) {
    different.insert(get(*row));
    parts.push_back(fmt::format("{} on {}", get(*row), row->size().words()));
  }
  return different.size() == 1 ? *different.begin() : fmt::format("{}", fmt::join(parts, ", "));
}

bool global_batch_grows(const StudyResult& result) {
  const auto rows = used_rows(result);
  return rows.size() > 1 && rows.back()->global_batch > rows.front()->global_batch;
}

std::string scaling_words(const StudyResult& result) {
  if (result.mode == "weak")
    return "weak: every rank keeps its batch, so the global batch grows with the ranks";
  if (result.mode == "strong")
    return "strong: the global batch stays, so the batch of a rank shrinks with the ranks";
  return result.mode == "mixed" ? "mixed: neither batch stays the same" : result.mode;
}

std::string batch_words(const StudyResult& result) {
  const auto text = [](int64_t value) { return fmt::to_string(value); };
  return fmt::format("{} samples a rank and step; {} in all",
                     per_size(result, [&](const ScaleRow& row) { return text(row.local_batch); }),
                     per_size(result, [&](const ScaleRow& row) { return text(row.global_batch); }));
}

std::string learning_rate_words(const StudyResult& result, const Configuration& settings) {
  const std::string given = setting(settings, "optimizer.lr");
  const std::string peak = per_size(
      result, [](const ScaleRow& row) { return fmt::format("{:.3g}", row.peak_learning_rate); });
  if (given.empty()) return peak.find("nan") == std::string::npos ? peak + " at its largest" : "";
  std::string text = fmt::format("optimizer.lr = {}", given);
  if (const std::string schedule = setting(settings, "schedule.name"); !schedule.empty())
    text += fmt::format(", schedule {}", schedule);
  if (scales_rate(settings))
    return text + fmt::format(", times a factor for the global batch ({} in {}); {} at its largest",
                              setting(settings, "schedule.scale_with_batch"),
                              "schedule.scale_with_batch", peak);
  if (global_batch_grows(result))
    return text +
           ", the same on all sizes although the global batch grows. Larger batches make fewer "
           "updates in an epoch, so more epochs are to be expected";
  return text + ", the same on all sizes";
}

/// Whether the runs ended at the report's target: with --collect --target they may have had
/// another.
bool ended_at_it(const StudyResult& result) {
  return std::ranges::none_of(result.runs, [&](const RunSummary& run) {
    return run.usable() &&
           (!run.log.start.target || target_words(*run.log.start.target, result.judge) !=
                                         target_words(*result.target, result.judge));
  });
}

std::string stop_words(const StudyResult& result) {
  if (!ended_at_it(result))
    return fmt::format(
        "{}. It is not the one that the runs had: each ended at its own target or after its last "
        "epoch. The first evaluation on the {} set that reaches this one counts",
        target_words(*result.target, result.judge), result.judge);
  return fmt::format(
      "{}. A run ends at the first evaluation on the {} set that reaches it. That is fair for "
      "comparing times; as an estimate for new data the value is too good, because the {} set "
      "decides when to stop{}",
      target_words(*result.target, result.judge), result.judge, result.judge,
      result.tested() ? "; the test set's was measured once, at the end" : "");
}

std::string runs_words(const StudyResult& result) {
  int usable = 0, failed = 0, stopped = 0;
  for (const ScaleRow& row : result.rows)
    usable += row.runs, failed += row.failed, stopped += row.stopped;
  std::string text = per_size(result, [](const ScaleRow& row) {
    return fmt::format("{} {}", row.runs, row.runs == 1 ? "run" : "runs");
  });
  if (used_rows(result).size() > 1 && text.find(" on ") == std::string::npos)
    text += " on each number of ranks";
  if (!usable)
    return fmt::format("none counts: {} failed, {} stopped before the end", failed, stopped);
  if (failed) text += fmt::format("; {} more failed", failed);
  if (stopped) text += fmt::format("; {} more stopped before the end", stopped);
  return text;
}

/// Lists the different values of a fact over the runs.
std::string over_runs(const StudyResult& result,
                      const std::function<std::string(const trace::RunStart&)>& get) {
  std::set<std::string> values;
  for (const RunSummary& run : result.runs)
    if (const std::string value = get(run.log.start); !value.empty()) values.insert(value);
  return fmt::format("{}", fmt::join(values, "; "));
}

std::string dates(const StudyResult& result) {
  std::string first, last;
  for (const RunSummary& run : result.runs) {
    if (run.log.start.time > 0 && (first.empty() || trace::iso_time(run.log.start.time) < first))
      first = trace::iso_time(run.log.start.time);
    if (run.log.stop && run.log.stop->time > 0 && trace::iso_time(run.log.stop->time) > last)
      last = trace::iso_time(run.log.stop->time);
  }
  return first.empty() ? "" : first + (last.empty() ? "" : " to " + last);
}

Facts without_empty(Facts facts) {
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

}  // namespace

std::string number(double value) {
  if (!std::isfinite(value)) return "-";
  const int decimals = decimals_for(value);
  return decimals > kMostDecimals ? fmt::format("{:.2g}", value)
                                  : fmt::format("{:.{}f}", value, decimals);
}

std::string number(const Spread& s) {
  if (!std::isfinite(s.half_width)) return number(s.mean);
  const int decimals = decimals_for(s.mean);
  if (decimals > kMostDecimals) return fmt::format("{:.2g} ±{:.2g}", s.mean, s.half_width);
  return fmt::format("{:.{}f} ±{:.{}f}", s.mean, decimals, s.half_width, decimals);
}

std::string number(const Ratio& r) {
  if (!std::isfinite(r.value)) return "-";
  if (!std::isfinite(r.low)) return fmt::format("{:.2f}", r.value);
  return fmt::format("{:.2f} [{:.3g}, {:.3g}]", r.value, r.low, r.high);
}

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", 100 * share) : "-";
}

std::string target_words(const trace::Target& target, const std::string& judge) {
  return fmt::format("{} {} {}", metric_words(target.metric, judge),
                     target.higher_is_better ? "≥" : "≤", target.value);
}

Facts header_facts(const StudyResult& result, const ReportText& text) {
  Facts facts;
  facts.emplace_back("Scaling", scaling_words(result));
  if (!used_rows(result).empty()) {
    facts.emplace_back("Batch", batch_words(result));
    facts.emplace_back("Learning rate", learning_rate_words(result, text.settings));
  }
  if (result.target) facts.emplace_back("Target", stop_words(result));
  facts.emplace_back("Runs", runs_words(result));
  facts.emplace_back("Machine",
                     over_runs(result, [](const trace::RunStart& s) { return s.machine; }));
  facts.emplace_back("Made", text.made);
  return without_empty(std::move(facts));
}

Facts provenance(const StudyResult& result, const ReportText& text) {
  const auto fact = [&](std::string trace::RunStart::*member) {
    return over_runs(result, [member](const trace::RunStart& start) { return start.*member; });
  };
  const auto hosts = [](const trace::RunStart& s) {
    const std::set<std::string> names(s.hosts.begin(), s.hosts.end());
    return fmt::format("{}", fmt::join(names, ", "));
  };
  const auto threads = [](const ScaleRow& row) { return fmt::to_string(row.threads_per_rank); };
  return without_empty({{"Command", text.command},
                        {"Runs from", dates(result)},
                        {"Tutti", fact(&trace::RunStart::version)},
                        {"Git commit", fact(&trace::RunStart::git)},
                        {"Compiler", fact(&trace::RunStart::compiler)},
                        {"MPI", fact(&trace::RunStart::mpi)},
                        {"oneDNN", fact(&trace::RunStart::onednn)},
                        {"Machine", fact(&trace::RunStart::machine)},
                        {"Hosts", over_runs(result, hosts)},
                        {"Threads per rank", per_size(result, threads)},
                        {"Binding of rank 0", fact(&trace::RunStart::binding)},
                        {"Communication moved by", fact(&trace::RunStart::progress)},
                        {"Replicas stay together", fact(&trace::RunStart::synchronisation)}});
}

bool missed_target(const StudyResult& result) {
  return result.target &&
         std::ranges::any_of(result.rows, [](const auto& row) { return row.missed() > 0; });
}

std::vector<std::string> advice(const StudyResult& result, const Configuration& settings) {
  std::vector<std::string> lines;
  if (missed_target(result)) {
    const std::string epochs = setting(settings, "run.epochs");
    lines.push_back(
        fmt::format("Give the runs more time: --epochs N{}, which also stretches the "
                    "learning rate's schedule. That is another study: it needs another "
                    "--output-dir, or --fresh, which sets these runs aside.",
                    epochs.empty() ? "" : fmt::format(" (now {})", epochs)));
    if (global_batch_grows(result) && !scales_rate(settings))
      lines.push_back(
          "The batch grows with the ranks and the learning rate does not: try --set "
          "schedule.scale_with_batch=linear with schedule.base_batch at the smallest size's batch, "
          "or --mode strong, which keeps the global batch.");
  }
  if (std::ranges::any_of(result.rows, [](const ScaleRow& row) { return row.cut_off > 0; }))
    lines.push_back(fmt::format(
        "Some runs ended at a target of their own. Only runs that have this one can say "
        "when it is reached: --target {} in another --output-dir, or with --fresh.",
        result.target->value));
  if (std::ranges::any_of(result.rows,
                          [](const ScaleRow& row) { return row.runs > 0 && row.runs < 3; }))
    lines.push_back(
        "More repeats give intervals that mean something: --repeats 3 or more. Finished runs are "
        "kept.");
  return lines;
}

}  // namespace tutti::study
