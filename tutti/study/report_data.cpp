#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tutti/base/error.h"
#include "tutti/study/report.h"

namespace tutti::study {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const Spread& s) {
  return {{"count", s.count},         {"mean", number(s.mean)},
          {"min", number(s.low)},     {"max", number(s.high)},
          {"stdev", number(s.stdev)}, {"half_width_90", number(s.half_width)}};
}
Json to_json(const Ratio& r) {
  return {{"value", number(r.value)}, {"low_90", number(r.low)}, {"high_90", number(r.high)}};
}
Json to_json(const StepParts& p) {
  return {{"total_ms", number(p.total)},
          {"compute_ms", number(p.compute)},
          {"comm_exposed_ms", number(p.comm_exposed)},
          {"data_wait_ms", number(p.data_wait)},
          {"other_ms", number(p.other)}};
}

Json to_json(const ScaleRow& row) {
  return {{"ranks", row.ranks},
          {"runs", row.runs},
          {"failed", row.failed},
          {"reached", row.reached},
          {"oversubscribed", row.oversubscribed},
          {"local_batch", row.local_batch},
          {"global_batch", row.global_batch},
          {"samples_per_s", to_json(row.samples_per_s)},
          {"epoch_seconds", to_json(row.epoch_seconds)},
          {"parallel_speedup", to_json(row.parallel)},
          {"parallel_from_throughput", row.parallel_from_throughput},
          {"parallel_efficiency", number(row.parallel_efficiency)},
          {"parallel_speedup_runs", row.parallel_runs},
          {"target_seconds", to_json(row.reach_seconds)},
          {"target_epochs", to_json(row.epochs_to_target)},
          {"learning_speedup", to_json(row.learning)},
          {"learning_efficiency", number(row.learning_efficiency)},
          {"learning_speedup_runs", row.learning_runs},
          {"epochs_factor", number(row.epochs_factor)},
          {"remainder", number(row.remainder)},
          {"learning_rate_ratio", number(row.rate)},
          {"best", to_json(row.best)},
          {"step", to_json(row.step)}};
}

Json to_json(const RunSummary& run, const std::string& metric) {
  const RunStart& start = run.log.start;
  Json json = {
      {"ranks", run.ranks()},
      {"repeat", run.repeat},
      {"seed", start.seed},
      {"record", run.log.path},
      {"command", start.command},
      {"usable", run.usable()},
      {"failure", run.failure},
      {"earlier_attempts", run.earlier_attempts},
      {"hosts", start.hosts},
      {"threads_per_rank", start.threads_per_rank},
      {"samples_per_s", number(run.samples_per_s)},
      {"epoch_seconds", number(run.epoch_seconds)},
      {"target_seconds", run.reach ? number(run.reach->wall_seconds) : Json(nullptr)},
      {"target_train_seconds", run.reach ? number(run.reach->train_seconds) : Json(nullptr)},
      {"target_epochs", run.reach ? number(run.reach->epoch) : Json(nullptr)},
      {"best", number(run.best)},
      {"evals", Json::array()}};
  for (const EvalRecord& eval : run.log.evals)
    json["evals"].push_back({{"epoch", eval.epoch},
                             {"wall_seconds", number(eval.wall_seconds)},
                             {"train_seconds", number(eval.train_seconds)},
                             {"value", number(eval.value(metric))}});
  return json;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text)
    cell += c == '"' ? std::string("\"\"") : c == '\n' ? std::string(" ") : std::string(1, c);
  return cell + '"';
}

/// Cells of one CSV line; an unmeasured number is an empty cell.
struct Line {
  std::string text;
  Line& add(const std::string& cell) {
    text += (text.empty() ? "" : ",") + csv_cell(cell);
    return *this;
  }
  Line& add(double value) {
    return add(std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string());
  }
  template <std::integral T>
  Line& add(T value) {
    return add(fmt::format("{}", value));
  }
  Line& add(const Spread& s) { return add(s.mean).add(s.low).add(s.high).add(s.stdev); }
  Line& add(const Ratio& r) { return add(r.value).add(r.low).add(r.high); }
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) throw IoError(fmt::format("{}: cannot write the file", path));
}

}  // namespace

std::string rows_csv(const StudyResult& result) {
  std::string text =
      "ranks,runs,failed,reached,oversubscribed,local_batch,global_batch,samples_per_s,samples_per_"
      "s_min,samples_per_s_max,"
      "samples_per_s_stdev,epoch_s,epoch_s_min,epoch_s_max,epoch_s_stdev,parallel_speedup,parallel_"
      "speedup_low90,"
      "parallel_speedup_high90,parallel_efficiency,target_s,target_s_min,target_s_max,target_s_"
      "stdev,target_epochs,"
      "target_epochs_min,target_epochs_max,target_epochs_stdev,learning_speedup,learning_speedup_"
      "low90,learning_speedup_high90,"
      "learning_efficiency,epochs_factor,remainder,learning_rate_ratio,best,best_min,best_max,best_"
      "stdev,step_ms,compute_ms,"
      "comm_exposed_ms,data_wait_ms,other_ms\n";
  for (const ScaleRow& row : result.rows) {
    Line line;
    line.add(row.ranks)
        .add(row.runs)
        .add(row.failed)
        .add(row.reached)
        .add(int{row.oversubscribed})
        .add(row.local_batch)
        .add(row.global_batch);
    line.add(row.samples_per_s)
        .add(row.epoch_seconds)
        .add(row.parallel)
        .add(row.parallel_efficiency);
    line.add(row.reach_seconds)
        .add(row.epochs_to_target)
        .add(row.learning)
        .add(row.learning_efficiency);
    line.add(row.epochs_factor).add(row.remainder).add(row.rate).add(row.best);
    line.add(row.step.total)
        .add(row.step.compute)
        .add(row.step.comm_exposed)
        .add(row.step.data_wait)
        .add(row.step.other);
    text += line.text + '\n';
  }
  return text;
}

std::string runs_csv(const StudyResult& result) {
  std::string text =
      "ranks,repeat,seed,usable,samples_per_s,epoch_s,target_s,target_train_s,target_epochs,best,"
      "record,failure\n";
  for (const RunSummary& run : result.runs) {
    Line line;
    line.add(run.ranks())
        .add(run.repeat)
        .add(run.log.start.seed)
        .add(int{run.usable()})
        .add(run.samples_per_s)
        .add(run.epoch_seconds);
    line.add(run.reach ? run.reach->wall_seconds : kNotMeasured)
        .add(run.reach ? run.reach->train_seconds : kNotMeasured);
    line.add(run.reach ? run.reach->epoch : kNotMeasured)
        .add(run.best)
        .add(run.log.path)
        .add(run.failure);
    text += line.text + '\n';
  }
  return text;
}

std::string json_report(const StudyResult& result, const ReportText& text) {
  const std::string metric = result.target ? result.target->metric : "accuracy";
  Json json = {{"schema", 1},           {"title", text.title},
               {"made", text.made},     {"workload", result.title},
               {"mode", result.mode},   {"metric", metric},
               {"target", nullptr},     {"base_ranks", result.base_ranks},
               {"notes", result.notes}, {"commands", text.commands},
               {"rows", Json::array()}, {"runs", Json::array()}};
  if (result.target)
    json["target"] = {{"metric", metric},
                      {"value", result.target->value},
                      {"higher_is_better", result.target->higher_is_better}};
  for (const ScaleRow& row : result.rows) json["rows"].push_back(to_json(row));
  for (const RunSummary& run : result.runs) json["runs"].push_back(to_json(run, metric));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

void write_reports(const StudyResult& result, const ReportText& text,
                   const std::string& directory) {
  write_file(directory + "/study.csv", rows_csv(result));
  write_file(directory + "/runs.csv", runs_csv(result));
  write_file(directory + "/study.json", json_report(result, text));
  write_file(directory + "/report.html", html_report(result, text));
}

}  // namespace tutti::study
