#include "tutti/trace/csv.h"

#include <fmt/format.h>

#include <fstream>
#include <set>

#include "tutti/base/error.h"
#include "tutti/trace/record_fields.h"

namespace tutti {
namespace {

/// Comma-separated names, or values, of one event's plain fields.
struct Cells {
  std::string text;
  bool names;
  void put(std::string_view cell) {
    if (!text.empty()) text += ',';
    text += cell;
  }
  void operator()(const char* key, double value) {
    put(names ? key : std::isfinite(value) ? fmt::format("{}", value) : "");
  }
  void operator()(const char* key, int64_t value) { put(names ? key : fmt::format("{}", value)); }
  void operator()(const char* key, bool value) { put(names ? key : value ? "1" : "0"); }
  void operator()(const char*, const std::map<std::string, double>&) {
  }  // evals_csv gives these columns of their own
};

template <class Event>
std::string cells(const Event& event, bool names) {
  Cells row{names ? "time" : fmt::format("{:.3f}", event.time), names};
  record::fields(event, row);
  return row.text;
}

template <class Event>
std::string table(const std::vector<Event>& events) {
  std::string text = cells(Event{}, true) + '\n';
  for (const Event& event : events) text += cells(event, false) + '\n';
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  if (!file) throw IoError(fmt::format("{}: cannot write the file", path));
}

}  // namespace

std::string steps_csv(const RunLog& log) { return table(log.steps); }
std::string epochs_csv(const RunLog& log) { return table(log.epochs); }

std::string evals_csv(const RunLog& log) {
  std::set<std::string> names;
  for (const EvalRecord& eval : log.evals)
    for (const auto& [metric, value] : eval.metrics) names.insert(metric);
  std::string text = cells(EvalRecord{}, true);
  for (const std::string& metric : names) text += ',' + metric;
  text += '\n';
  for (const EvalRecord& eval : log.evals) {
    Cells row{cells(eval, false), false};
    for (const std::string& metric : names) row(metric.c_str(), eval.value(metric));
    text += row.text + '\n';
  }
  return text;
}

void write_csv(const RunLog& log, const std::string& directory) {
  write_file(directory + "/steps.csv", steps_csv(log));
  write_file(directory + "/epochs.csv", epochs_csv(log));
  write_file(directory + "/evals.csv", evals_csv(log));
}

}  // namespace tutti
