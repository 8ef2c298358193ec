#include "tutti/data/format/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class Inflater {
 public:
  explicit Inflater(std::span<const uint8_t> input) {
    CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib {}",
          zlibVersion());  // 16: gzip framing, so zlib checks the CRC
    rest_ = input;
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Inflates into `out`, appending; returns zlib's code once the stream ends or fails.
  int run(std::vector<uint8_t>& out) {
    constexpr size_t kMost = std::numeric_limits<uInt>::max();  // zlib counts in 32 bits
    for (;;) {
      if (produced_ == out.size()) out.resize(out.size() + out.size() / 2 + 65536);
      const size_t give = std::min(rest_.size(), kMost),
                   take = std::min(out.size() - produced_, kMost);
      stream_.next_in = const_cast<Bytef*>(rest_.data());
      stream_.avail_in = static_cast<uInt>(give);
      stream_.next_out = out.data() + produced_;
      stream_.avail_out = static_cast<uInt>(take);
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      rest_ = rest_.subspan(give - stream_.avail_in);
      produced_ += take - stream_.avail_out;
      const bool starved =
          code == Z_BUF_ERROR || (code == Z_OK && rest_.empty() && stream_.avail_out > 0);
      if (starved || code != Z_OK) {
        out.resize(produced_);
        return starved ? Z_BUF_ERROR : code;
      }
    }
  }
  const char* message() const { return stream_.msg != nullptr ? stream_.msg : "invalid stream"; }
  size_t unused() const { return rest_.size(); }

 private:
  z_stream stream_{};
  std::span<const uint8_t> rest_;
  size_t produced_ = 0;
};

}  // namespace

FileBytes FileBytes::map(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0)
    throw IoError(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    throw IoError(fmt::format("{}: cannot stat: {}", path.string(), std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw IoError(fmt::format("{}: expected a file, found a directory or device", path.string()));
  FileBytes result;
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return result;  // an empty mapping is not allowed
  // Populate: the whole set is read at open anyway (labels, checksums), and later no reader thread
  // waits for a page fault.
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (address == MAP_FAILED)
    throw IoError(
        fmt::format("{}: cannot map {} bytes: {}", path.string(), size, std::strerror(errno)));
  result.bytes_ = {static_cast<const uint8_t*>(address), size};
  result.mapped_ = true;
  return result;
}

FileBytes FileBytes::inflate(const std::filesystem::path& path) {
  const FileBytes packed = map(path);
  const auto input = packed.bytes();
  if (input.size() < 18 || input[0] != 0x1f ||
      input[1] != 0x8b)  // RFC 1952: 10 bytes of header, 8 of trailer
    throw IoError(
        fmt::format("{}: expected a gzip file (bytes 1f 8b ...), found {} bytes of something else: "
                    "fetch it again, or rename it "
                    "without .gz if it is not compressed",
                    path.string(), input.size()));
  const uint8_t* end = input.data() + input.size();
  const size_t announced =
      end[-4] | size_t{end[-3]} << 8 | size_t{end[-2]} << 16 | size_t{end[-1]} << 24;
  std::vector<uint8_t> out;
  // One byte more than announced, so that the stream's end is seen without growing. Deflate gains
  // at most a factor 1032.
  out.resize(std::min(announced, input.size() * 1032) + 1);
  Inflater inflater(input);
  const int code = inflater.run(out);
  if (code == Z_BUF_ERROR)
    throw IoError(fmt::format(
        "{}: truncated: the gzip stream does not end within its {} bytes: fetch the file again",
        path.string(), input.size()));
  if (code != Z_STREAM_END)
    throw IoError(fmt::format("{}: corrupted: {} after {} bytes: fetch the file again",
                              path.string(), inflater.message(), out.size()));
  if (inflater.unused() > 0)
    throw IoError(fmt::format(
        "{}: {} unexpected bytes after the end of the gzip stream: fetch the file again",
        path.string(), inflater.unused()));
  return own(std::move(out));
}

FileBytes FileBytes::own(std::vector<uint8_t> bytes) {
  FileBytes result;
  result.owned_ = std::move(bytes);
  result.bytes_ = result.owned_;
  return result;
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), mapped_(std::exchange(other.mapped_, false)),
      owned_(std::move(other.owned_)) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  if (this != &other) {
    unmap();
    bytes_ = std::exchange(other.bytes_, {});
    mapped_ = std::exchange(other.mapped_, false);
    owned_ = std::move(other.owned_);
  }
  return *this;
}

FileBytes::~FileBytes() { unmap(); }

void FileBytes::unmap() noexcept {
  if (mapped_) ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace tutti::data
