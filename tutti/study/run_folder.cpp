#include "tutti/study/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/base/error_type.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/log.h"
#include "tutti/trace/record.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

/// Parses n0004-r1, n0004-s2x2-r1 and the like: at least four digits of ranks, then the repeat. (By
/// hand, because <regex> takes the compiler four seconds.)
std::optional<RunFolder> as_run(const fs::path& path) {
  const std::string text = path.filename().string();
  std::string_view name = text;
  const auto take = [&](std::string_view prefix, auto& number) {
    if (!name.starts_with(prefix)) return size_t{0};
    name.remove_prefix(prefix.size());
    const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    const auto read = std::from_chars(name.data(), name.data() + digits, number);
    name.remove_prefix(digits);
    return read.ec == std::errc() ? digits : 0;
  };
  RunFolder run{.path = path.string()};
  bool named = take("n", run.ranks) >= 4;
  for (const char* prefix = "-s"; named && name.starts_with(prefix); prefix = "x")
    named = take(prefix, run.spatial.emplace_back()) >= 1;
  named = named && take("-r", run.repeat) >= 1 && name.empty();
  return named ? std::optional(run) : std::nullopt;
}

/// Returns the record of a folder; nothing if there is none that can be read.
std::optional<trace::RunLog> record_in(const std::string& directory) {
  const std::string path = directory + "/" + trace::kRecordFile;
  try {
    if (!is_there(path)) return std::nullopt;
    return trace::read_run(path);
  } catch (const IoError& error) {
    log::warn("{}", error.what());
    return std::nullopt;
  }
}

}  // namespace

bool is_finished(const std::string& directory) {
  const auto log = record_in(directory);
  return log && log->stop &&
         (log->stop->status == trace::RunStatus::done ||
          log->stop->status == trace::RunStatus::target_missed);
}

bool has_failed(const std::string& directory) {
  const auto log = record_in(directory);
  return log && log->stop && log->stop->status == trace::RunStatus::failed;
}

bool is_resumable(const std::string& directory) {
  const auto log = record_in(directory);
  if (!log || (log->stop && log->stop->error == name(ErrorType::numeric))) return false;
  std::error_code failed;
  for (fs::directory_iterator at(directory + "/checkpoints", failed), end; !failed && at != end;
       at.increment(failed))
    if (at->path().filename().string().starts_with("step_")) return true;
  return false;
}

std::string Difference::text() const {
  return fmt::format("{}: {} there, {} now", key, there, now);
}

std::vector<Difference> differences(const Configuration& there, const Configuration& now,
                                    const ChangeRule& rule) {
  const auto value = [](const Configuration& in, const std::string& key) {
    const auto at = in.find(key);
    return at == in.end() ? std::string("absent") : at->second;
  };
  std::set<std::string> keys;
  for (const auto& [key, text] : there) keys.insert(key);
  for (const auto& [key, text] : now) keys.insert(key);
  std::vector<Difference> found;
  for (const std::string& key : keys) {
    const OnChange means = rule ? rule(key) : OnChange::begins_anew;
    if (value(there, key) != value(now, key) && means != OnChange::no_matter)
      found.push_back({key, value(there, key), value(now, key), means});
  }
  return found;
}

void refuse_run_of_train(const std::string& directory) {
  if (!is_there(directory + "/" + trace::kRecordFile) && !is_there(directory + "/checkpoints"))
    return;
  throw ConfigError(
      fmt::format("'{}' holds a run of 'tutti train': choose another --output-dir for the study, "
                  "or move that run elsewhere",
                  directory));
}

std::string run_path(const std::string& directory, const Size& size, int repeat) {
  return fmt::format("{}/runs/n{:04}{}-r{}", directory, size.ranks,
                     size.spatial.empty() ? "" : "-s" + size.grid(), repeat);
}

std::vector<RunFolder> study_runs(const std::string& directory) {
  std::vector<RunFolder> runs;
  std::error_code failed;
  for (fs::directory_iterator at(directory + "/runs", failed), end; !failed && at != end;
       at.increment(failed))
    if (const auto run = as_run(at->path())) runs.push_back(*run);
  return runs;
}

int count_attempts(const std::string& directory) {
  int count = 0;
  while (is_there(fmt::format("{}.attempt-{}", directory, count + 1))) ++count;
  return count;
}

void set_aside(const std::string& directory) {
  if (!is_there(directory)) return;
  const std::string target = fmt::format("{}.attempt-{}", directory, count_attempts(directory) + 1);
  std::error_code failed;
  fs::rename(directory, target, failed);
  if (failed)
    throw IoError(fmt::format("{}: cannot rename to {}: {}", directory, target, failed.message()));
}

FolderLock lock_study(const std::string& directory, double patience) {
  return {directory,
          {.file = trace::kStudyLockFile,
           .holder = "a study",
           .other_way = "choose another --output-dir",
           .patience = patience,
           .inherited = true}};
}

}  // namespace tutti::study
