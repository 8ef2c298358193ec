#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/own_file.h"
#include "tutti/study/describe.h"
#include "tutti/study/notes.h"
#include "tutti/study/report.h"

namespace tutti::study {
namespace {

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json batch_or_null(int64_t samples) { return samples ? Json(samples) : Json(nullptr); }

Json to_json(const Spread& s) {
  return {{"count", s.count},
          {"mean", number_or_null(s.mean)},
          {"min", number_or_null(s.low)},
          {"max", number_or_null(s.high)},
          {"stdev", number_or_null(s.stdev)},
          {"half_width_90", number_or_null(s.half_width)}};
}
Json to_json(const Ratio& r) {
  return {{"value", number_or_null(r.value)},
          {"low_90", number_or_null(r.low)},
          {"high_90", number_or_null(r.high)}};
}
Json to_json(const StepParts& p) {
  return {{"total_ms", number_or_null(p.total)},
          {"compute_ms", number_or_null(p.compute)},
          {"comm_exposed_ms", number_or_null(p.comm_exposed)},
          {"data_wait_ms", number_or_null(p.data_wait)},
          {"other_ms", number_or_null(p.other)}};
}

Json to_json(const std::vector<CurvePoint>& curve) {
  Json json = Json::array();
  for (const CurvePoint& p : curve)
    json.push_back({{"epoch", p.epoch},
                    {"wall_seconds", number_or_null(p.seconds)},
                    {"median", number_or_null(p.median)},
                    {"min", number_or_null(p.low)},
                    {"max", number_or_null(p.high)}});
  return json;
}
Json to_json(const Lateness& late) {
  if (late.steps <= 0) return nullptr;
  return {{"steps", late.steps},
          {"waited_ms", number_or_null(late.waited_ms)},
          {"waited_for_late_ms", number_or_null(late.waited_for_late_ms)},
          {"latest_rank", late.latest_rank},
          {"latest_share", number_or_null(late.latest_share)},
          {"latest_ms", number_or_null(late.latest_ms)}};
}
Json to_json(const Facts& facts) {
  Json json = Json::array();
  for (const auto& [what, text] : facts) json.push_back({{"what", what}, {"text", text}});
  return json;
}

Json to_json(const ScaleRow& row) {
  return {{"ranks", row.ranks},
          {"parts", row.size().grid()},
          {"runs", row.runs},
          {"failed", row.failed},
          {"stopped", row.stopped},
          {"reached", row.reached},
          {"cut_off", row.cut_off},
          {"oversubscribed", row.oversubscribed},
          {"local_batch", batch_or_null(row.local_batch)},
          {"global_batch", batch_or_null(row.global_batch)},
          {"samples_per_s", to_json(row.samples_per_s)},
          {"epoch_seconds", to_json(row.epoch_seconds)},
          {"parallel_speedup", to_json(row.parallel)},
          {"parallel_from_throughput", row.parallel_from_throughput},
          {"parallel_efficiency", number_or_null(row.parallel_efficiency)},
          {"parallel_speedup_runs", row.parallel_runs},
          {"target_seconds", to_json(row.reach_seconds)},
          {"target_epochs", to_json(row.epochs_to_target)},
          {"learning_speedup", to_json(row.learning)},
          {"learning_efficiency", number_or_null(row.learning_efficiency)},
          {"learning_speedup_runs", row.learning_runs},
          {"epochs_factor", number_or_null(row.epochs_factor)},
          {"remainder", number_or_null(row.remainder)},
          {"gain_per_second", number_or_null(row.rate)},
          {"best", to_json(row.best)},
          {"test", to_json(row.test)},
          {"step", to_json(row.step)},
          {"threads_per_rank", row.threads_per_rank},
          {"peak_learning_rate", number_or_null(row.peak_learning_rate)},
          {"critical_batch", to_json(row.critical_batch)},
          {"target_core_seconds", to_json(row.core_seconds)},
          {"curve", to_json(row.quality)},
          {"training_loss", to_json(row.training_loss)},
          {"arrivals", to_json(row.arrivals)}};
}

Json to_json(const RunSummary& run, const std::string& metric, const std::string& directory) {
  const trace::RunStart& start = run.log.start;
  Json json = {
      {"ranks", run.ranks()},
      {"parts", run.size().grid()},
      {"repeat", run.repeat},
      {"seed", start.seed},
      {"record", relative_path(run.log.path, directory)},
      {"command", start.command},
      {"usable", run.usable()},
      {"cut_off", run.cut_off},
      {"failure", run.failure},
      {"earlier_attempts", run.earlier_attempts},
      {"hosts", start.hosts},
      {"threads_per_rank", start.threads_per_rank},
      {"samples_per_s", number_or_null(run.samples_per_s)},
      {"epoch_seconds", number_or_null(run.epoch_seconds)},
      {"target_seconds", run.reach ? number_or_null(run.reach->wall_seconds) : Json(nullptr)},
      {"target_train_seconds",
       run.reach ? number_or_null(run.reach->train_seconds) : Json(nullptr)},
      {"target_epochs", run.reach ? number_or_null(run.reach->epoch) : Json(nullptr)},
      {"target_core_seconds", number_or_null(core_seconds(run))},
      {"local_batch", batch_or_null(start.local_batch)},
      {"global_batch", batch_or_null(start.global_batch)},
      {"peak_learning_rate", number_or_null(run.peak_learning_rate)},
      {"critical_batch", number_or_null(run.critical_batch)},
      {"step", to_json(run.step)},
      {"best", number_or_null(run.best)},
      {"test", number_or_null(run.test)},
      {"evals", Json::array()},
      {"epochs", Json::array()}};
  json.update(trace::machine_json(run.machine));
  for (const trace::EvalRecord& eval : run.log.evals)
    json["evals"].push_back({{"epoch", eval.epoch},
                             {"wall_seconds", number_or_null(eval.wall_seconds)},
                             {"train_seconds", number_or_null(eval.train_seconds)},
                             {"value", number_or_null(eval.value(metric))}});
  for (const trace::EpochRecord& epoch : run.log.epochs)
    json["epochs"].push_back({{"epoch", epoch.epoch},
                              {"train_loss", number_or_null(epoch.train_loss)},
                              {"seconds", number_or_null(epoch.seconds)}});
  return json;
}

}  // namespace

std::string json_report(const StudyResult& result, const ReportText& text) {
  const std::string& metric = result.measure.metric;
  Json json = {{"schema", 1},
               {"title", text.title},
               {"made", text.made},
               {"workload", result.title},
               {"mode", result.mode},
               {"metric", metric},
               {"higher_is_better", result.measure.higher_is_better},
               {"metric_words", metric_words(metric, result.judge)},
               {"target", nullptr},
               {"base_ranks", result.base_ranks},
               {"replayed", result.replayed()},
               {"notes", all_notes(result)},
               {"command", text.command},
               {"commands", text.commands},
               {"header", to_json(header_facts(result, text))},
               {"provenance", to_json(provenance(result, text))},
               {"configuration", text.settings},
               {"rows", Json::array()},
               {"runs", Json::array()}};
  if (result.target)
    json["target"] = {{"metric", metric},
                      {"value", result.target->value},
                      {"higher_is_better", result.target->higher_is_better}};
  for (const ScaleRow& row : result.rows) json["rows"].push_back(to_json(row));
  for (const RunSummary& run : result.runs)
    json["runs"].push_back(to_json(run, metric, text.directory));
  return print_json(json, 1) + '\n';
}

std::string relative_path(const std::string& path, const std::string& directory) {
  if (directory.empty() || path.empty()) return path;
  return std::filesystem::path(path).lexically_proximate(directory).generic_string();
}

void write_report_file(const std::string& path, const std::string& text, const std::string& again) {
  try {
    auto file = output_stream(path);
    errno = 0;
    file << text << std::flush;
    if (!file) throw IoError(fmt::format("{}: cannot be written: {}", path, file_error(errno)));
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}; when it can be written, {}", error.what(), again));
  }
}

void write_reports(const StudyResult& result, const ReportText& text,
                   const std::string& directory) {
  const auto write = [&](const char* name, const std::string& content) {
    write_report_file(
        directory + "/" + name, content,
        fmt::format("'tutti study --collect --output-dir {}' makes the reports from the runs",
                    directory));
  };
  write("study.csv", rows_csv(result));
  write("runs.csv", runs_csv(result, text.directory));
  write("study.json", json_report(result, text));
  write("report.html", html_report(result, text));
}

}  // namespace tutti::study
