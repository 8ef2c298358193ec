#include "tutti/train/loop/reporter.h"

#include <filesystem>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/error_type.h"
#include "tutti/base/log.h"
#include "tutti/base/shell.h"
#include "tutti/comm/control/agree.h"
#include "tutti/keep/durable_file.h"

namespace tutti::train {
namespace {

std::string record_path(const keep::RunPlace& place) {
  return (std::filesystem::path(place.directory) / trace::kRecordFile).string();
}

trace::RunRecord open_record(const keep::RunPlace& place) {
  const std::string path = record_path(place);
  return trace::RunRecord(path, place.goes_on && std::filesystem::exists(path)
                                    ? trace::RunRecord::Open::resume
                                    : trace::RunRecord::Open::create);
}

/// Returns the events with which the tables of a resumed run begin. A record that cannot be read in
/// full does not prevent the resume.
trace::RunLog log_before(const std::string& path) {
  try {
    return trace::read_run(path);
  } catch (const IoError& error) {
    trace::Readable rest = trace::read_readable(path);
    log::warn("{}; the CSV tables go on without the {} line(s) of the record that cannot be read",
              error.what(), rest.passed_over);
    return std::move(rest.log);
  }
}

}  // namespace

Reporter::Reporter(const keep::RunPlace& place, trace::RunStart about,
                   const std::string& configuration)
    : record_(open_record(place)),
      tensorboard_(place.directory, about.hosts.empty() ? "host" : about.hosts.front()) {
  // Write it only after a resume was accepted: a refused one must leave the run's own file.
  if (!configuration.empty())
    keep::replace_file(std::filesystem::path(place.directory) / keep::kConfigFile, configuration);
  about.run_id = place.run_id;
  if (about.time == 0) about.time = trace::unix_now();
  if (!configuration.empty())
    tensorboard_.text(about.resume_step, about.time, "configuration",
                      "```toml\n" + configuration + "```\n");
  record_.append(std::move(about));
  csv_.emplace(log_before(record_.path()), place.directory);
}

template <class Event>
void Reporter::add_to_all(Event event) {
  event.time = trace::unix_now();
  record_.append(event);
  tensorboard_.add(event);
  csv_->add(event);
}

void Reporter::add(trace::StepRecord event) { add_to_all(event); }
void Reporter::add(trace::EpochRecord event) { add_to_all(event); }
void Reporter::add(trace::EvalRecord event) { add_to_all(event); }

void Reporter::add(trace::TestRecord event) {
  event.time = trace::unix_now();
  record_.append(event);
}

void append_failure(const keep::RunPlace& place, const comm::Communicator& communicator,
                    const std::exception& error, trace::RunStop event) noexcept {
  event.reason = error.what();
  if (communicator.size() > 1 && !comm::names_rank(event.reason))
    event.reason = communicator.who() + ": " + event.reason;
  event.error = name(type_of(error));
  trace::RunRecord::append_failure(record_path(place), std::move(event));
}

void log_places(const keep::RunPlace& place) {
  log::command("results in {} (record.jsonl, *.csv, config.toml)", shell_word(place.directory));
  log::command("checkpoints in {}", shell_word(place.checkpoints));
  log::command("curves: tensorboard --logdir {}", shell_word(place.directory));
}

void log_next(const keep::RunPlace& place, const LeftCheckpoints& left, const NextCommands& next,
              const std::string& beyond) {
  const auto last = std::filesystem::path(place.checkpoints) / fmt::format("step_{:07}", left.last);
  const std::string best = place.checkpoints + "/best";
  // A branch may not have written any checkpoint.
  if (left.last >= 0 && std::filesystem::exists(last))
    log::command("weights of step {}: {}", left.last, shell_word(last.string()));
  if (left.best >= 0 && std::filesystem::exists(best))
    log::command("best weights, of step {} with {}: {}", left.best, left.best_text,
                 shell_word(best));
  log::command("results in {}; curves: tensorboard --logdir {}", shell_word(place.directory),
               shell_word(place.directory));
  if (left.last >= 0 || left.best >= 0) log::command("evaluate: {}", next.eval);
  log::command("go on:    {}{}", next.resume, beyond);
}

}  // namespace tutti::train
