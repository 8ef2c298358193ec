#include "tutti/data/store/staging.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <map>
#include <mutex>
#include <span>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/data/content_hash.h"
#include "tutti/data/each_sample.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBlock = size_t{4} << 20;

/// Closes its descriptor at the end.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Tells an original from another file of its name.
struct Identity {
  int64_t bytes = -1, modified = 0;
  bool operator==(const Identity&) const = default;
};

Identity identity(const struct stat& status) {
  return {status.st_size,
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + int64_t{status.st_mtim.tv_nsec}};
}

struct ListedCopy {
  Identity original;
  uint64_t checksum = 0;
};

/// Reads the list. A killed process leaves incomplete lines: their files are copied again.
std::map<std::string, ListedCopy> read_copies(const fs::path& folder) {
  std::map<std::string, ListedCopy> copies;
  std::ifstream in = own_input(folder / kStagedList);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    ListedCopy copy;
    std::string checksum, name;
    if (words >> checksum >> copy.original.bytes >> copy.original.modified &&
        std::getline(words >> std::ws, name) && checksum.size() == 16 &&
        checksum.find_first_not_of("0123456789abcdef") == checksum.npos) {
      copy.checksum = std::stoull(checksum, nullptr, 16);
      copies[name] = copy;
    }
  }
  return copies;
}

struct Task {
  fs::path original;
  std::string name;  // path below both folders
  Identity found;
};

class Staging {
 public:
  explicit Staging(const StagingSpec& spec) : spec_(spec) {}

  StagingResult run() {
    const auto start = std::chrono::steady_clock::now();
    find_tasks();
    for (const Task& task : tasks_) result_.bytes += task.found.bytes;
    result_.files = std::ssize(tasks_);
    const std::vector<Task> missing = missing_of(tasks_);
    check_space(missing);
    if (spec_.share == 0) link_others();
    copy_all(missing);
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result_;
  }

  void check_room() {
    find_tasks();
    check_space(missing_of(tasks_));
  }

  int64_t verify() {
    find_tasks();
    const std::map<std::string, ListedCopy> there = read_copies(spec_.to);
    int64_t bytes = 0;
    for (const Task& task : tasks_) {
      const fs::path copy = spec_.to / task.name;
      const auto listed = there.find(task.name);
      if (listed == there.end() || listed->second.original != task.found)
        throw IoError(fmt::format("{}: is no copy of {} as it is now: stage it again",
                                  copy.string(), task.original.string()));
      ContentHash hash;
      FileBytes::open(copy).walk(0, [&](auto block, int64_t) { hash.add(block); });
      if (hash.value() != listed->second.checksum)
        throw IoError(fmt::format(
            "{}: its checksum is {:016x}, and was {:016x} when it was copied: the disk or somebody "
            "has changed it; remove it and stage it again",
            copy.string(), hash.value(), listed->second.checksum));
      bytes += task.found.bytes;
    }
    return bytes;
  }

 private:
  /// Returns each file once.
  std::vector<Task> tasks_of(const std::vector<fs::path>& files) const {
    std::error_code unknown;
    if (fs::equivalent(spec_.from.empty() ? "." : spec_.from, spec_.to, unknown))
      throw ConfigError(
          fmt::format("staging {} into itself: choose another folder", spec_.to.string()));
    std::vector<Task> all;
    for (const fs::path& file : files) {
      const fs::path name =
          file.lexically_normal().lexically_relative(spec_.from.lexically_normal());
      if (name.empty() || *name.begin() == "..")
        throw ConfigError(fmt::format(
            "{} does not lie below {}: staging keeps names below data.dir; let data.dir be a "
            "folder that holds all files",
            file.string(), spec_.from.string()));
      struct stat status {};
      if (::stat(file.c_str(), &status) != 0)
        throw IoError(fmt::format("{}: cannot be staged: {}", file.string(), file_error(errno)));
      if (!S_ISREG(status.st_mode))
        throw IoError(fmt::format("{}: cannot be staged: no regular file", file.string()));
      all.push_back({file, name.generic_string(), identity(status)});
    }
    std::ranges::sort(all, {}, &Task::name);
    all.erase(std::unique(all.begin(), all.end(),
                          [](const Task& a, const Task& b) { return a.name == b.name; }),
              all.end());
    return all;
  }

  /// Finds this process's files: by decreasing size, each goes to the share that has fewest bytes.
  void find_tasks() {
    std::vector<Task> all = tasks_of(spec_.files);
    std::ranges::stable_sort(all, std::greater{}, [](const Task& t) { return t.found.bytes; });
    std::vector<int64_t> load(static_cast<size_t>(spec_.shares), 0);
    for (Task& task : all) {
      const auto least = std::ranges::min_element(load);
      *least += task.found.bytes + 1;  // one byte each, so that empty files are dealt out, too
      if (least - load.begin() == spec_.share) tasks_.push_back(std::move(task));
    }
  }

  void link_others() {
    for (const Task& task : missing_of(tasks_of(spec_.linked))) {
      const fs::path target = spec_.to / task.name, part = part_of(target);
      make_folder(target.parent_path());
      if (::symlink(fs::absolute(task.original).c_str(), part.c_str()) != 0 ||
          ::rename(part.c_str(), target.c_str()) != 0)
        throw IoError(
            fmt::format("{}: cannot become a link: {}", target.string(), file_error(errno)));
      ++result_.linked_files;
    }
  }

  /// Returns the tasks without a current copy.
  std::vector<Task> missing_of(const std::vector<Task>& tasks) const {
    make_own_folder(spec_.to);
    const std::map<std::string, ListedCopy> there = read_copies(spec_.to);
    std::vector<Task> missing;
    for (const Task& task : tasks) {
      const auto listed = there.find(task.name);
      if (listed == there.end() || listed->second.original != task.found || !has_copy(task))
        missing.push_back(task);
    }
    return missing;
  }

  /// Returns the name of an incomplete copy: it is random, so that nobody can predict it.
  static fs::path part_of(const fs::path& target) {
    return target.string() + ".part-" + random_name();
  }

  static void make_folder(const fs::path& folder) {
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed)
      throw IoError(
          fmt::format("cannot make the folder {}: {}", folder.string(), failed.message()));
  }

  bool has_copy(const Task& task) const {
    struct stat status {};
    return ::lstat((spec_.to / task.name).c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size == task.found.bytes && why_foreign(status).empty();
  }

  void check_space(const std::vector<Task>& missing) const {
    int64_t wanted = 0;
    for (const Task& task : missing) wanted += task.found.bytes;
    struct statvfs disk {};
    if (wanted == 0 || ::statvfs(spec_.to.c_str(), &disk) != 0) return;  // writing says why
    const auto room = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
    if (wanted > room)
      throw IoError(fmt::format(
          "{}: {:.1f} MiB are to be staged there and {:.1f} MiB are free: make room, choose "
          "another folder, or train without staging",
          spec_.to.string(), static_cast<double>(wanted) / (1 << 20),
          static_cast<double>(room) / (1 << 20)));
  }

  void copy_all(const std::vector<Task>& missing) {
    std::mutex mutex;
    const int64_t count = std::ssize(missing);
    const auto work = [&](int64_t i) {
      const Task& task = missing[static_cast<size_t>(i)];
      copy(task);
      const std::lock_guard lock(mutex);
      ++result_.copied_files;
      result_.copied_bytes += task.found.bytes;
    };
    const auto threads = static_cast<int>(std::min<int64_t>(spec_.threads, count));
    for_each_sample(count, threads, work, false);
  }

  void copy(const Task& task) const {
    const fs::path target = spec_.to / task.name;
    make_folder(target.parent_path());
    const fs::path part = part_of(target);
    uint64_t checksum = 0;
    try {
      checksum = copy_bytes(task, part);
      if (::rename(part.c_str(), target.c_str()) != 0)
        throw IoError(
            fmt::format("{}: cannot get its name: {}", target.string(), file_error(errno)));
      // A killed process may have left half a line: this one must start on a new line.
      append_to_list(fmt::format("\n{:016x} {} {} {}\n", checksum, task.found.bytes,
                                 task.found.modified, task.name));
    } catch (...) {
      ::unlink(part.c_str());
      throw;
    }
  }

  static uint64_t copy_bytes(const Task& task, const fs::path& part) {
    const std::string from = task.original.string();
    const OpenFile in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!in.is_open())
      throw IoError(fmt::format("{}: cannot be staged: {}", from, file_error(errno)));
    ::posix_fadvise(in.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    const OpenFile out(open_own_file(part, O_WRONLY | O_CREAT | O_EXCL));
    std::vector<std::byte> block(kCopyBlock);
    ContentHash hash;
    for (int64_t at = 0; at < task.found.bytes;) {
      const size_t wanted = std::min(kCopyBlock, static_cast<size_t>(task.found.bytes - at));
      const ssize_t got = ::pread(in.get(), block.data(), wanted, at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        throw IoError(fmt::format("{}: cannot read byte {}: {}", from, at, file_error(errno)));
      if (got == 0)
        throw IoError(fmt::format(
            "{}: has been shortened while it was staged: it had {} bytes and now ends at {}", from,
            task.found.bytes, at));
      const auto bytes = std::span(block).first(static_cast<size_t>(got));
      hash.add(bytes);
      write_all(out.get(), bytes, part);
      at += got;
    }
    struct stat after {};
    if (::fstat(in.get(), &after) != 0 || identity(after) != task.found)
      throw IoError(fmt::format(
          "{}: has changed while it was staged: wait until nobody writes it, then stage again",
          from));
    if (::fdatasync(out.get()) != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
      throw IoError(
          fmt::format("{}: did not reach the disk: {}", part.string(), file_error(errno)));
    return hash.value();
  }

  static void write_all(int file, std::span<const std::byte> bytes, const fs::path& name) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(file, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0)
        throw IoError(fmt::format(
            "{}: cannot be written: {}; what was staged before it stays and is not copied again",
            name.string(), file_error(errno)));
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
  }

  /// Writes a whole line with one write(2), so that lines of several processes do not mix.
  void append_to_list(const std::string& line) const {
    const fs::path path = spec_.to / kStagedList;
    const OpenFile list(open_own_file(path, O_WRONLY | O_CREAT | O_APPEND));
    if (::write(list.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw IoError(fmt::format("{}: cannot be written: {}", path.string(), file_error(errno)));
  }

  const StagingSpec& spec_;
  std::vector<Task> tasks_;
  StagingResult result_;
};

}  // namespace

StagingResult stage_files(const StagingSpec& spec) {
  CHECK(spec.shares > 0 && spec.share >= 0 && spec.share < spec.shares, "share {} of {}",
        spec.share, spec.shares);
  return Staging(spec).run();
}

void check_staging_room(const StagingSpec& spec) {
  StagingSpec all = spec;
  all.share = 0;
  all.shares = 1;
  Staging(all).check_room();
}

int64_t verify_staged(const StagingSpec& spec) { return Staging(spec).verify(); }

}  // namespace tutti::data
