#include "tutti/trace/csv.h"

#include <fmt/format.h>

#include <cerrno>
#include <set>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/trace/record_fields.h"

namespace tutti::trace {
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
  auto file = output_stream(path);
  errno = 0;
  file << text;
  file.flush();
  if (!file) throw IoError(fmt::format("{}: cannot write the file: {}", path, file_error(errno)));
}

}  // namespace

std::string csv_cell(const std::string& text) {
  const bool formula = text.find_first_of("=+-@\t\r") == 0;
  if (!formula && text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string cell = formula ? "\"'" : "\"";
  for (const char c : text)
    cell += c == '"'                 ? std::string("\"\"")
            : c == '\n' || c == '\r' ? std::string(" ")
                                     : std::string(1, c);
  return cell + '"';
}

std::string steps_csv(const RunLog& log) { return table(log.steps); }
std::string epochs_csv(const RunLog& log) { return table(log.epochs); }

namespace {

std::set<std::string> metrics_of(const std::vector<EvalRecord>& evals) {
  std::set<std::string> names;
  for (const EvalRecord& eval : evals)
    for (const auto& [metric, value] : eval.metrics) names.insert(metric);
  return names;
}

std::string evals_header(const std::set<std::string>& metrics) {
  std::string text = cells(EvalRecord{}, true);
  for (const std::string& metric : metrics) text += ',' + csv_cell(metric);
  return text + '\n';
}

std::string evals_row(const EvalRecord& eval, const std::set<std::string>& metrics) {
  Cells row{cells(eval, false), false};
  for (const std::string& metric : metrics) row(metric.c_str(), eval.value(metric));
  return row.text + '\n';
}

}  // namespace

std::string evals_csv(const RunLog& log) {
  const std::set<std::string> metrics = metrics_of(log.evals);
  std::string text = evals_header(metrics);
  for (const EvalRecord& eval : log.evals) text += evals_row(eval, metrics);
  return text;
}

void write_csv(const RunLog& log, const std::string& directory) {
  write_file(directory + "/steps.csv", steps_csv(log));
  write_file(directory + "/epochs.csv", epochs_csv(log));
  write_file(directory + "/evals.csv", evals_csv(log));
}

void CsvFiles::File::append(const std::string& text) {
  errno = 0;
  stream << text << std::flush;
  if (!stream) throw IoError(fmt::format("{}: cannot append: {}", path, file_error(errno)));
}

CsvFiles::CsvFiles(const RunLog& before, const std::string& directory)
    : metrics_(metrics_of(before.evals)), no_evals_(before.evals.empty()) {
  write_csv(before, directory);
  for (const auto& [file, name] :
       {std::pair{&steps_, "steps.csv"}, std::pair{&epochs_, "epochs.csv"},
        std::pair{&evals_, "evals.csv"}}) {
    file->path = directory + "/" + name;
    file->stream = output_stream(file->path, std::ios::app);
  }
}

void CsvFiles::add(const StepRecord& event) { steps_.append(cells(event, false) + '\n'); }
void CsvFiles::add(const EpochRecord& event) { epochs_.append(cells(event, false) + '\n'); }

void CsvFiles::add(const EvalRecord& event) {
  if (std::exchange(no_evals_, false) && !event.metrics.empty()) {
    metrics_ = metrics_of({event});
    write_file(evals_.path, evals_header(metrics_));
  }
  evals_.append(evals_row(event, metrics_));
}

}  // namespace tutti::trace
