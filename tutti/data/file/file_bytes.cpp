#include "tutti/data/file/file_bytes.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

#include "tutti/base/small_text.h"

namespace tutti::data {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code unreachable;
  return fs::is_regular_file(path, unreachable);
}

bool first_warning(const fs::path& path, std::string_view warning) {
  static std::mutex mutex;
  static std::set<std::string> warned;  // guarded by mutex
  std::error_code unknown;
  const fs::path one = fs::weakly_canonical(path, unknown);
  const std::lock_guard lock(mutex);
  return warned.insert(fmt::format("{}: {}", (unknown ? path : one).string(), warning)).second;
}

namespace {

/// Says where a broken link leads; empty for other files.
std::string missing_target(const fs::path& path) {
  std::error_code no_link;
  const std::string target = fs::read_symlink(path, no_link).string();
  if (no_link) return {};
  return fmt::format(
      ": it is a symbolic link to '{}', which is not there{}", target,
      target.find("annex/objects/") == target.npos ? "" : ": fetch it with 'git annex get FILE'");
}

std::atomic<int64_t> bytes_of_all_files{0};
std::atomic<bool> direct_reads{false};

/// Direct reads need places, sizes and memory that are multiples of this.
constexpr size_t kDirectUnit = 4096;
/// Bytes that one direct read asks for at most.
constexpr size_t kDirectBlock = size_t{1} << 20;

struct FreeAligned {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// Returns this thread's buffer for direct reads.
std::byte* direct_block() {
  thread_local const std::unique_ptr<std::byte, FreeAligned> block(
      static_cast<std::byte*>(std::aligned_alloc(kDirectUnit, kDirectBlock)));
  return block.get();
}

/// An open file, closed when nobody reads from it any more.
struct Descriptors {
  int plain = -1;
  int direct = -1;  // the same file without the system's cache; -1: not open so

  Descriptors() = default;
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    if (plain >= 0) ::close(plain);
    if (direct >= 0) ::close(direct);
  }
};

/// A file that may be closed for a while.
struct ClosableFile {
  std::mutex mutex;
  std::shared_ptr<const Descriptors>
      open;                      // guarded by mutex; shared with reads that are under way
  std::atomic<int64_t> used{0};  // when it was read last
};

/// The files that this process has open.
class FewOpenFiles {
 public:
  /// Notes that `file` has been opened; closes the files used longest ago if there are too many.
  void add(ClosableFile& file, std::shared_ptr<const Descriptors> open) {
    const std::lock_guard lock(mutex_);
    while (std::ssize(files_) >= most()) {
      const auto oldest = std::ranges::min_element(
          files_, {}, [](const ClosableFile* one) { return one->used.load(); });
      close(**oldest);
      files_.erase(oldest);
    }
    const std::lock_guard own(file.mutex);
    if (!file.open) files_.push_back(&file);
    file.open = std::move(open);
  }
  void remove(ClosableFile& file) {
    const std::lock_guard lock(mutex_);
    std::erase(files_, &file);
  }
  int64_t now() { return clock_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static int64_t most() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
    return std::clamp<int64_t>(static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 20)) / 4,
                               8, 4096);
  }
  static void close(ClosableFile& file) {
    std::shared_ptr<const Descriptors> last;  // destroyed after the lock is released
    const std::lock_guard lock(file.mutex);
    last.swap(file.open);
  }

  std::mutex mutex_;
  std::vector<ClosableFile*> files_;  // guarded by mutex_
  std::atomic<int64_t> clock_{0};
};

/// Never destroyed: files of other static objects may outlive it.
FewOpenFiles& open_files() {
  static FewOpenFiles* const files = std::make_unique<FewOpenFiles>().release();
  return *files;
}

}  // namespace

struct FileBytes::Content {
  std::string name;
  bool on_disk = false;  // otherwise the bytes are in memory
  bool direct = false;
  int64_t size = 0;
  timespec modified{};  // time of modification of a file
  std::vector<uint8_t> memory;
  mutable ClosableFile file;

  Content() = default;
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
  ~Content() {
    if (on_disk) open_files().remove(file);
  }

  /// Opens the file, the first time or again.
  std::shared_ptr<const Descriptors> opened() const {
    auto found = std::make_shared<Descriptors>();
    // Without O_NONBLOCK, opening a pipe waits for somebody to write into it.
    found->plain = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (found->plain < 0) {
      const int error = errno;
      const std::string text = fmt::format("{}: cannot open: {}{}", name, file_error(error),
                                           error == ENOENT ? missing_target(name) : std::string());
      if (error == ENOENT) throw BadFile(text);
      throw IoError(text);
    }
    if (direct)  // a failure means that the file system cannot
      found->direct = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT);
    return found;
  }

  std::shared_ptr<const Descriptors> descriptors() const {
    file.used = open_files().now();
    {
      const std::lock_guard lock(file.mutex);
      if (file.open) return file.open;
    }
    auto again = opened();
    struct stat status {};
    // Some file systems renumber a file when nobody has it open, so its number proves nothing.
    if (::fstat(again->plain, &status) != 0 || status.st_size != size ||
        status.st_mtim.tv_sec != modified.tv_sec || status.st_mtim.tv_nsec != modified.tv_nsec)
      throw IoError(fmt::format(
          "{}: is another file than the one of {} bytes that was opened first: it was changed "
          "while it was in use. Restore it, then start again from the last checkpoint",
          name, size));
    open_files().add(file, again);
    return again;
  }

  /// Returns how many bytes it has read; the caller reads the rest normally, which reports errors.
  static size_t read_directly(int descriptor, int64_t offset, std::span<uint8_t> out) {
    size_t done = 0;
    while (done < out.size()) {
      const auto at = static_cast<size_t>(offset) + done, begin = at / kDirectUnit * kDirectUnit;
      const size_t wanted =
          std::min(kDirectBlock,
                   (at + out.size() - done - begin + kDirectUnit - 1) / kDirectUnit * kDirectUnit);
      const ssize_t got = ::pread(descriptor, direct_block(), wanted, static_cast<off_t>(begin));
      if (got < 0 && errno == EINTR) continue;
      if (got <= static_cast<ssize_t>(at - begin)) break;
      const size_t bytes = std::min(static_cast<size_t>(got) - (at - begin), out.size() - done);
      std::memcpy(out.data() + done, direct_block() + (at - begin), bytes);
      done += bytes;
    }
    return done;
  }

  void read(int64_t offset, std::span<uint8_t> out) const {
    if (!on_disk) {
      if (!out.empty()) std::memcpy(out.data(), memory.data() + offset, out.size());
      return;
    }
    const auto open = descriptors();
    size_t done = open->direct >= 0 && out.size() >= kLeastDirect
                      ? read_directly(open->direct, offset, out)
                      : 0;
    while (done < out.size()) {
      const ssize_t got = ::pread(open->plain, out.data() + done, out.size() - done,
                                  offset + static_cast<int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        throw IoError(fmt::format("{}: cannot read byte {}: {}", name,
                                  offset + static_cast<int64_t>(done), file_error(errno)));
      if (got == 0)
        throw IoError(fmt::format(
            "{}: has been shortened while it was in use: it had {} bytes when it was opened and "
            "now ends before byte {}. Restore the file, then start again from the last checkpoint",
            name, size, offset + static_cast<int64_t>(out.size())));
      done += static_cast<size_t>(got);
    }
    bytes_of_all_files.fetch_add(std::ssize(out), std::memory_order_relaxed);
  }
};

void FileBytes::set_direct(bool direct) { direct_reads = direct; }
int64_t FileBytes::bytes_read() { return bytes_of_all_files; }

FileBytes FileBytes::open(const fs::path& path) {
  auto content = std::make_shared<Content>();
  content->name = path.string();
  content->direct = direct_reads;
  auto open = content->opened();
  struct stat status {};
  if (::fstat(open->plain, &status) != 0)
    throw IoError(fmt::format("{}: cannot stat: {}", content->name, file_error(errno)));
  if (!S_ISREG(status.st_mode))
    throw IoError(fmt::format("{}: expected a file, found a {}: give the path of a regular file",
                              content->name, kind_of_file(status.st_mode)));
  content->size = status.st_size;
  content->modified = status.st_mtim;
  content->on_disk = true;
  content->file.used = open_files().now();
  open_files().add(content->file, std::move(open));
  return FileBytes(std::move(content));
}

FileBytes FileBytes::own(std::vector<uint8_t> bytes, std::string name) {
  auto content = std::make_shared<Content>();
  content->name = std::move(name);
  content->size = std::ssize(bytes);
  content->memory = std::move(bytes);
  return FileBytes(std::move(content));
}

int64_t FileBytes::size() const { return content_->size; }
const std::string& FileBytes::name() const { return content_->name; }

void FileBytes::read(int64_t offset, std::span<uint8_t> out) const {
  CHECK(offset >= 0 && std::ssize(out) <= size() - offset, "{} bytes at {} of {} bytes of {}",
        out.size(), offset, size(), name());
  const std::shared_ptr<const Content> content = content_;
  content->read(offset, out);
}

const uint8_t* FileBytes::in_memory(int64_t offset) const {
  return content_->on_disk ? nullptr : content_->memory.data() + offset;
}

void FileBytes::walk(int64_t offset,
                     const std::function<void(std::span<const uint8_t>, int64_t)>& look) const {
  constexpr int64_t kBlock = 1 << 20;
  std::vector<uint8_t> block;
  for (int64_t at = offset; at < size(); at += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, size() - at)));
    read(at, block);
    look(block, at);
  }
}

void FileBytes::read_ahead() const {
  if (content_->on_disk) ::posix_fadvise(content_->descriptors()->plain, 0, 0, POSIX_FADV_WILLNEED);
}

void StridedBytes::look(std::span<const uint8_t> block, int64_t at) {
  const int64_t end = at + std::ssize(block);
  for (int64_t next = first + std::ssize(bytes) * stride; next < end; next += stride)
    bytes.push_back(block[static_cast<size_t>(next - at)]);
}

}  // namespace tutti::data
