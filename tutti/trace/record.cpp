#include "tutti/trace/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <random>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/json.h"
#include "tutti/base/own_file.h"
#include "tutti/trace/record_fields.h"

namespace tutti::trace {
namespace {

constexpr std::array<std::string_view, 4> kStatusNames = {"done", "target_missed", "requeue",
                                                          "failed"};

/// JSON has no NaN and no infinity: both become null.
struct Put {
  Json& json;
  void operator()(const char* key, double value) const {
    json[key] = std::isfinite(value) ? Json(value) : Json(nullptr);
  }
  void operator()(const char* key, RunStatus value) const { json[key] = name(value); }
  void operator()(const char* key, const std::map<std::string, double>& values) const {
    if (values.empty()) return;
    Json object = Json::object();
    for (const auto& [metric, value] : values) Put{object}(metric.c_str(), value);
    json[key] = std::move(object);
  }
  void operator()(const char* key, const std::optional<Target>& target) const {
    if (!target) return;
    Json object = Json::object();
    record::target_fields(*target, Put{object});
    json[key] = std::move(object);
  }
  void operator()(const char* key, const std::optional<int64_t>& value) const {
    if (value) json[key] = *value;
  }
  template <class T>
  void operator()(const char* key, const T& value) const {
    json[key] = value;
  }
};

/// Sets a `time` of 0 to now.
std::string to_line(RunEvent& any) {
  Json json{{"schema", kRecordSchema}};
  std::visit(
      [&](auto& event) {
        json["event"] = event.kEvent;
        if (event.time == 0) event.time = unix_now();
        json["time"] = event.time;
        record::fields(event, Put{json});
      },
      any);
  // Names and paths may hold bytes that are not UTF-8; a record must not be lost for that.
  return print_json(json) + '\n';
}

}  // namespace

std::string_view name(RunStatus status) { return kStatusNames.at(static_cast<size_t>(status)); }

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string iso_time(double unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string make_run_id(double unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return fmt::format("{}-{:06x}", text.data(), std::random_device{}() & 0xffffffU);
}

double EvalRecord::value(std::string_view metric) const {
  if (metric == "accuracy") return accuracy;
  if (metric == "loss") return loss;
  const auto found = metrics.find(std::string(metric));
  return found == metrics.end() ? kNotMeasured : found->second;
}

void EvalRecord::set(const std::string& metric, double value) {
  if (metric == "accuracy")
    accuracy = value;
  else if (metric == "loss")
    loss = value;
  else
    metrics[metric] = value;
}

namespace {

/// Removes text behind the last newline: the half line of a process that was killed while it wrote.
void cut_half_line(int file, const std::string& path) {
  struct stat status {};
  if (fstat(file, &status) != 0) throw IoError(fmt::format("{}: {}", path, file_error(errno)));
  off_t end = status.st_size;
  char last = 0;
  while (end > 0 && pread(file, &last, 1, end - 1) == 1 && last != '\n') --end;
  if (end != status.st_size && ftruncate(file, end) != 0)
    throw IoError(
        fmt::format("{}: cannot cut the half-written last line: {}", path, file_error(errno)));
}

/// Whether the last line has no end. It is left as it is, because the rest may still be on its way
/// if several ranks fail.
bool ends_within_line(int file) {
  struct stat status {};
  char last = '\n';
  return fstat(file, &status) == 0 && status.st_size > 0 &&
         pread(file, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

}  // namespace

RunRecord::RunRecord(std::string path, Open mode) : path_(std::move(path)) {
  file_ = open_output(path_, O_CREAT | O_APPEND | O_RDWR | (mode == Open::create ? O_TRUNC : 0));
  if (mode == Open::resume) cut_half_line(file_, path_);
}

RunRecord::~RunRecord() {
  if (file_ >= 0) ::close(file_);
}

RunRecord::RunRecord(RunRecord&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

RunRecord& RunRecord::operator=(RunRecord&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

void RunRecord::require_place() const {
  struct stat open {};
  struct stat named {};
  // If the path cannot be examined for another reason, the write itself reports what is wrong.
  const int error = stat(path_.c_str(), &named) == 0 ? 0 : errno;
  if (fstat(file_, &open) == 0 &&
      (error == 0 ? named.st_ino != open.st_ino || named.st_dev != open.st_dev
                  : error == ENOENT || error == ENOTDIR))
    throw IoError(
        fmt::format("{}: is not there any more: its folder was removed, moved or replaced while "
                    "the run wrote into it, so nothing that follows would be kept",
                    path_));
}

void RunRecord::append_failure(const std::string& path, RunStop event) noexcept {
  int file = -1;
  try {
    file = open_output(path, O_RDWR | O_APPEND);
    event.status = RunStatus::failed;
    RunEvent stop = std::move(event);
    // Without the newline, the line would join a half line that a full disk left earlier.
    const std::string line = (ends_within_line(file) ? "\n" : "") + to_line(stop);
    // One call: a disk too full for the line leaves a cut line, which readers skip.
    if (::write(file, line.data(), line.size()) >= 0) sync_to_disk(file);
  } catch (...) {
    // Without a record or memory, the run then ends as if it had been killed.
  }
  if (file >= 0) ::close(file);
}

void RunRecord::append(RunEvent event) {
  CHECK(file_ >= 0, "run record was moved from");
  require_place();
  if (auto* const start = std::get_if<RunStart>(&event)) {
    if (start->time == 0) start->time = unix_now();
    if (start->time_iso.empty()) start->time_iso = iso_time(start->time);
  }
  const std::string line = to_line(event);
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t wrote = ::write(file_, line.data() + done, line.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0)
      throw IoError(
          fmt::format("{}: cannot append to the run record: {}", path_, file_error(errno)));
    done += static_cast<size_t>(wrote);
  }
  if (std::holds_alternative<RunStop>(event) && !sync_to_disk(file_))
    throw IoError(
        fmt::format("{}: the run record did not reach the disk: {}", path_, file_error(errno)));
}

}  // namespace tutti::trace
