#include <fmt/format.h>

#include <fstream>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/small_text.h"
#include "tutti/trace/record_fields.h"

namespace tutti::trace {
namespace {

/// A field that is absent keeps its default, so that older records stay readable; null is "not
/// measured".
struct Get {
  const Json& json;
  void operator()(const char* key, double& value) const {
    if (const auto at = json.find(key); at != json.end())
      value = at->is_null() ? kNotMeasured : at->get<double>();
  }
  void operator()(const char* key, RunStatus& value) const {
    const std::string text = json.at(key).get<std::string>();
    for (const RunStatus status :
         {RunStatus::done, RunStatus::target_missed, RunStatus::requeue, RunStatus::failed})
      if (name(status) == text) {
        value = status;
        return;
      }
    throw IoError(fmt::format("unknown status '{}'", text));
  }
  void operator()(const char* key, std::map<std::string, double>& values) const {
    if (const auto at = json.find(key); at != json.end())
      for (const auto& [metric, value] : at->items())
        values[metric] = value.is_null() ? kNotMeasured : value.get<double>();
  }
  void operator()(const char* key, std::optional<int64_t>& value) const {
    if (const auto at = json.find(key); at != json.end() && !at->is_null())
      value = json_value<int64_t>(*at);
  }
  void operator()(const char* key, std::optional<Target>& target) const {
    if (const auto at = json.find(key); at != json.end() && !at->is_null())
      record::target_fields(target.emplace(), Get{*at});
  }
  template <class T>
  void operator()(const char* key, T& value) const {
    if (const auto at = json.find(key); at != json.end() && !at->is_null())
      value = json_value<T>(*at);
  }
};

template <class Event>
Event parse(const Json& json) {
  Event event;
  Get{json}("time", event.time);
  record::fields(event, Get{json});
  return event;
}

/// Removes events after the checkpoint from which a later process resumed: those steps are computed
/// again.
void drop_after(RunLog& log, int64_t step) {
  const auto later = [step](const auto& event) { return event.step > step; };
  std::erase_if(log.steps, later);
  std::erase_if(log.arrivals, later);
  std::erase_if(log.data, later);
  std::erase_if(log.sync, later);
  std::erase_if(log.stages, later);
  std::erase_if(log.servers, later);
  std::erase_if(log.noise, later);
  std::erase_if(log.machine, later);
  std::erase_if(log.epochs, later);
  std::erase_if(log.evals, later);
  std::erase_if(log.checkpoints, later);
  if (log.test && log.test->step > step) log.test.reset();
  if (log.target_reached && log.target_reached->step > step) log.target_reached.reset();
  log.stop.reset();
}

void add_event(RunLog& log, const Json& json, bool& started) {
  if (!json.is_object()) throw IoError("not a JSON object");
  if (const int schema = json_value<int>(json.at("schema")); schema > kRecordSchema)
    throw IoError(fmt::format(
        "its schema {} is that of a later version of Tutti, and this one reads up to {}: read the "
        "record with the version that wrote it",
        schema, kRecordSchema));
  const std::string event = json.at("event").get<std::string>();
  if (event == "run_start") {
    RunStart start = parse<RunStart>(json);
    if (started) {
      drop_after(log, start.resume_step);
      ++log.resumes;
      log.changes.insert(log.changes.end(), start.changes.begin(), start.changes.end());
      log.start.target = start.target;  // the target that applies from now on
      log.start.metric = start.metric;
      log.start.higher_is_better = start.higher_is_better;
    } else {
      log.start = std::move(start);
    }
    started = true;
    return;
  }
  if (!started) throw IoError(fmt::format("event '{}' before run_start", event));
  if (event == "step") log.steps.push_back(parse<StepRecord>(json));
  if (event == "arrivals") log.arrivals.push_back(parse<ArrivalsRecord>(json));
  if (event == "staging") log.staging = parse<StagingRecord>(json);
  if (event == "data") log.data.push_back(parse<DataRecord>(json));
  if (event == "sync") log.sync.push_back(parse<SyncRecord>(json));
  if (event == "stages") log.stages.push_back(parse<StagesRecord>(json));
  if (event == "servers") log.servers.push_back(parse<ServersRecord>(json));
  if (event == "noise") log.noise.push_back(parse<NoiseRecord>(json));
  if (event == "machine") log.machine.push_back(parse<MachineRecord>(json));
  if (event == "epoch") log.epochs.push_back(parse<EpochRecord>(json));
  if (event == "eval") log.evals.push_back(parse<EvalRecord>(json));
  if (event == "test") log.test = parse<TestRecord>(json);
  if (event == "checkpoint") log.checkpoints.push_back(parse<CheckpointRecord>(json));
  if (event == "target_reached") log.target_reached = parse<TargetReached>(json);
  if (event == "run_stop") {
    RunStop stop = parse<RunStop>(json);
    // If several ranks fail, the first one to report has seen the cause.
    if (!log.stop || log.stop->status != RunStatus::failed || stop.status != RunStatus::failed)
      log.stop = std::move(stop);
  }
}

bool is_failure(const Json& event) {
  return event.value("event", "") == "run_stop" &&
         event.value("status", "") == name(RunStatus::failed);
}

}  // namespace

std::string read_run_id(const std::string& path) {
  expect_regular_file(path);
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const Json json = json_or_null(line);
  // A run_id that is not text is ignored: value() would throw the library's own exception.
  const auto id = json.is_object() ? json.find("run_id") : json.end();
  return id != json.end() && id->is_string() ? id->get<std::string>() : "";
}

RunLog read_run(const std::string& path) {
  expect_regular_file(path);
  std::ifstream file(path);
  if (!file) throw IoError(fmt::format("{}: cannot open the run record", path));
  RunLog log;
  log.path = path;
  bool started = false;
  std::string line, not_json;  // not_json: error for half lines if no failure follows
  for (int number = 1; std::getline(file, line); ++number) {
    const bool cut = file.eof();  // the writer ends every line, so a line without its end was cut
    if (line.empty()) continue;
    bool explained = false;
    try {
      const Json event = parse_json(line);
      add_event(log, event, started);
      explained = is_failure(event);
    } catch (const Json::parse_error& error) {
      if (cut) {
        log.truncated = true;
        not_json.clear();
        break;
      }
      if (not_json.empty())
        not_json = fmt::format("{}:{}: not JSON: {}", path, number, error.what());
      continue;
    } catch (const std::exception& error) {
      throw IoError(not_json.empty() ? fmt::format("{}:{}: {}", path, number, error.what())
                                     : not_json);
    }
    if (not_json.empty()) continue;
    if (!explained) throw IoError(not_json);
    log.truncated = true;
    not_json.clear();
  }
  if (!not_json.empty()) throw IoError(not_json);
  if (!started) throw IoError(fmt::format("{}: no run_start line; is this a run record?", path));
  return log;
}

Readable read_readable(const std::string& path) {
  expect_regular_file(path);
  std::ifstream file(path);
  if (!file) throw IoError(fmt::format("{}: cannot open the run record", path));
  Readable found;
  found.log.path = path;
  bool started = true;  // the first line may be damaged
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    try {
      add_event(found.log, parse_json(line), started);
    } catch (const std::exception&) {
      ++found.passed_over;
    }
  }
  return found;
}

}  // namespace tutti::trace
