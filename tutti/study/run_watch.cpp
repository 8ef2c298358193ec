#include "tutti/study/run_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tutti/base/json.h"
#include "tutti/base/visible.h"
#include "tutti/study/metrics.h"

namespace tutti::study {
namespace {

std::string ranks_text(const Size& size) {
  return fmt::format("{} {}", size.text(), size.ranks == 1 ? "rank" : "ranks");
}

double number_named(const Json& event, const char* key) {
  const auto at = event.find(key);
  return at != event.end() && at->is_number() ? at->get<double>() : trace::kNotMeasured;
}

}  // namespace

void RecordTail::read() {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path_, unknown)) return;
  std::ifstream file(path_, std::ios::binary);
  if (!file) return;
  file.seekg(0, std::ios::end);
  if (file.tellg() < offset_) *this = RecordTail(path_);  // the file was begun anew
  file.seekg(offset_);
  std::ostringstream added;
  added << file.rdbuf();
  const std::string text = added.str();
  offset_ += static_cast<std::streamoff>(text.size());
  rest_ += text;
  size_t at = 0;
  for (size_t end; (end = rest_.find('\n', at)) != std::string::npos; at = end + 1)
    take(rest_.substr(at, end - at));
  rest_.erase(0, at);
}

void RecordTail::take(const std::string& line) {
  const auto event = json_or_null(line);
  if (!event.is_object()) return;
  const std::string name = event.value("event", "");
  // The epoch of a step is the current one, the epochs of an evaluation are finished ones.
  if (name == "step" && number_named(event, "epoch") > 0) epoch_ = number_named(event, "epoch");
  if (name == "run_start") {
    if (std::isfinite(number_named(event, "validation_samples"))) judge_ = "validation";
    if (const auto metric = event.find("metric"); metric != event.end() && metric->is_string())
      metric_ = metric->get<std::string>();
  }
  if (name == "eval") {
    epoch_ = std::max(epoch_, std::ceil(number_named(event, "epoch")));
    const auto further = event.find("metrics");
    const bool among = further != event.end() && further->is_object() && further->contains(metric_);
    if (const double value = number_named(among ? *further : event, metric_.c_str());
        std::isfinite(value))
      quality_ = value;
  }
}

std::string RecordTail::text(int64_t epochs) const {
  if (epoch_ < 0) return "starting";
  std::string text = fmt::format("epoch {:.0f}", epoch_);
  if (epochs > 0) text += fmt::format(" of {}", epochs);
  if (std::isfinite(quality_))
    text += fmt::format(", {} {:.3g}", metric_words(metric_, judge_), quality_);
  return text;
}

std::string result_text(const trace::RunLog& log, const std::optional<trace::Target>& given) {
  const std::optional<trace::Target> target = given ? given : log.start.target;
  RunSummary run{.log = log};
  const Measure measure = measure_of(target, log.start);
  measure_run(run, target, measure);
  const auto epochs = [](double count) {
    return fmt::format("{:.4g} {}", count, count == 1 ? "epoch" : "epochs");
  };
  if (run.reach)
    return log.start.replayed_on.empty()
               ? fmt::format("target reached after {:.1f} s and {}", run.reach->wall_seconds,
                             epochs(run.reach->epoch))
               : fmt::format("target reached after {:.4g} virtual s and {}",
                             run.reach->wall_seconds, epochs(run.reach->epoch));
  const std::string metric = metric_words(measure.metric, judge_of(log));
  const double done = log.evals.empty() ? 0 : log.evals.back().epoch;
  const std::string best = std::isfinite(run.best)
                               ? fmt::format("best {} {:.4g} in {}", metric, run.best, epochs(done))
                               : "nothing was evaluated";
  return target ? "target not reached, " + best : best;
}

StudyDisplay::StudyDisplay(Settings settings, const std::vector<PlannedRun>& runs)
    : settings_(settings), runs_(runs) {}

/// Returns text like "run  3 of 12   4 ranks  repeat 1", equally wide for every run.
std::string StudyDisplay::label(size_t index) const {
  const auto digits = [](size_t number) { return std::to_string(number).size(); };
  size_t ranks = 0, repeats = 0;
  for (const PlannedRun& run : runs_) {
    ranks = std::max(ranks, ranks_text(run.size()).size());
    repeats = std::max(repeats, digits(static_cast<size_t>(run.repeat)));
  }
  const PlannedRun& run = runs_[index];
  return fmt::format("run {:>{}} of {}  {:>{}}  repeat {:>{}}  ", index + 1, digits(runs_.size()),
                     runs_.size(), ranks_text(run.size()), ranks, run.repeat, repeats);
}

void StudyDisplay::update(size_t index, const std::string& text) {
  if (settings_.quiet || settings_.columns <= 0) return;
  const std::string line = label(index) + visible(text);
  // One column stays free: some terminals wrap when the last one is filled.
  fmt::print(settings_.out, "\r\033[K{}",
             line.substr(0, static_cast<size_t>(std::max(1, settings_.columns - 1))));
  std::fflush(settings_.out);
  drawn_ = true;
}

void StudyDisplay::finish(size_t index, const std::string& text) {
  if (settings_.quiet) return;
  clear();
  fmt::print(settings_.out, "{}{}\n", label(index), visible(text));
  std::fflush(settings_.out);
}

void StudyDisplay::clear() {
  if (!drawn_) return;
  fmt::print(settings_.out, "\r\033[K");
  std::fflush(settings_.out);
  drawn_ = false;
}

}  // namespace tutti::study
