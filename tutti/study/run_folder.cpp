#include "tutti/study/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/trace/record.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

/// The record of a folder; none when there is none that can be read.
std::optional<RunLog> record_in(const std::string& directory) {
  const std::string path = directory + "/" + kRecordFile;
  try {
    if (!is_there(path)) return std::nullopt;
    return read_run(path);
  } catch (const IoError& error) {
    log::warn("{}", error.what());
    return std::nullopt;
  }
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// The study that wrote its name into the lock file last.
struct Holder {
  long process = 0;
  std::string host;
  /// False only when it is known to have ended: then it is its runs that still hold the lock.
  bool may_live() const {
    return host != host_name() || process <= 0 || kill(static_cast<pid_t>(process), 0) == 0 ||
           errno != ESRCH;
  }
};

Holder read_holder(const std::string& path) {
  Holder holder;
  std::ifstream(path) >> holder.process >> holder.host;
  return holder;
}

}  // namespace

bool is_there(const std::string& path) {
  std::error_code failed;
  const bool found = fs::exists(path, failed);
  if (failed) throw IoError(fmt::format("{}: cannot be looked at: {}", path, failed.message()));
  return found;
}

bool is_finished(const std::string& directory) {
  const auto log = record_in(directory);
  return log && log->stop &&
         (log->stop->status == RunStatus::done || log->stop->status == RunStatus::target_missed);
}

bool is_resumable(const std::string& directory) {
  const auto log = record_in(directory);
  if (!log || (log->stop && log->stop->status == RunStatus::failed)) return false;
  std::error_code failed;
  for (fs::directory_iterator at(directory + "/checkpoints", failed), end; !failed && at != end;
       at.increment(failed))
    if (at->path().filename().string().starts_with("step_")) return true;
  return false;
}

std::vector<std::string> differences(const Configuration& there, const Configuration& now) {
  static const std::set<std::string> kWithoutEffect = {"run.output_dir", "run.log_level",
                                                       "checkpoint.resume"};
  std::vector<std::string> found;
  const auto value = [](const Configuration& in, const std::string& key) {
    const auto at = in.find(key);
    return at == in.end() ? std::string("absent") : at->second;
  };
  std::set<std::string> keys;
  for (const auto& [key, text] : there) keys.insert(key);
  for (const auto& [key, text] : now) keys.insert(key);
  for (const std::string& key : keys)
    if (!kWithoutEffect.contains(key) && value(there, key) != value(now, key))
      found.push_back(fmt::format("{}: {} there, {} now", key, value(there, key), value(now, key)));
  return found;
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

StudyLock::StudyLock(const std::string& directory, double patience) {
  const std::string path = directory + "/.study.lock";
  // Without O_CLOEXEC: the runs hold it, too.
  file_ = open(path.c_str(), O_RDWR | O_CREAT, 0666);
  if (file_ < 0)
    throw IoError(fmt::format("{}: cannot be opened: {}; choose another --output-dir", path,
                              std::strerror(errno)));
  const auto start = std::chrono::steady_clock::now();
  for (bool said = false; flock(file_, LOCK_EX | LOCK_NB) != 0;) {
    const int reason = errno;
    const Holder holder = read_holder(path);
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (reason != EWOULDBLOCK && reason != EINTR)
      throw IoError(fmt::format("{}: cannot be locked: {}", path, std::strerror(reason)));
    if (holder.may_live() || waited.count() > patience) {
      close(file_);
      throw ConfigError(fmt::format(
          "{} is in use by {} {} on {}: wait for its end, or choose another --output-dir",
          directory,
          holder.may_live() ? "another study, process" : "runs that still go on of the ended study",
          holder.process, holder.host));
    }
    if (!said)
      log::info("waiting for the end of a run that study {} on {} had started", holder.process,
                holder.host);
    said = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const std::string name = fmt::format("{} {}\n", getpid(), host_name());
  if (ftruncate(file_, 0) != 0 || pwrite(file_, name.data(), name.size(), 0) < 0)
    log::warn("{}: cannot be written: {}", path, std::strerror(errno));
}

StudyLock::~StudyLock() { close(file_); }

}  // namespace tutti::study
