#include "tutti/data/format/sets/lattices_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/data/content_hash.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little,
              "the file's numbers are written as they lie in memory");

struct Header {
  char magic[8] = {'T', 'U', 'T', 'T', 'I', 'L', 'A', 'T'};
  uint32_t version = 1;
  uint32_t header_bytes = 64;
  uint64_t seed = 0;
  int64_t first = 0;
  int64_t count = 0;
  uint32_t height = kLatticeSide;
  uint32_t width = kLatticeSide;
  uint32_t classes = kLatticeClasses;
  uint32_t zero = 0;
  uint64_t payload_hash = 0;
};
static_assert(sizeof(Header) == 64);

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw BadFile(unreadable(path, Content::unknown, what) + ", or make it anew");
}

Header checked_file_header(const fs::path& path, const FileBytes& file) {
  const Header expected;
  std::array<uint8_t, sizeof(Header)> bytes;
  if (file.size() < std::ssize(bytes))
    refuse(path, fmt::format("truncated: expected a header of {} bytes, found {} bytes",
                             sizeof(Header), file.size()));
  file.read(0, bytes);
  auto header = std::bit_cast<Header>(bytes);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0)
    refuse(path, "not a lattices file: expected the magic TUTTILAT");
  if (header.version != 1 || header.header_bytes != sizeof(Header))
    refuse(path,
           fmt::format("expected version 1 with a header of 64 bytes, found version {} with {}",
                       header.version, header.header_bytes));
  if (header.height != expected.height || header.width != expected.width ||
      header.classes != expected.classes)
    refuse(path, fmt::format("expected 64x64 pixels and 5 classes, found {}x{} and {}",
                             header.height, header.width, header.classes));
  const auto payload = file.size() - std::ssize(bytes);
  if (header.count < 1 || payload % kLatticeRecordBytes != 0 ||
      payload / kLatticeRecordBytes != header.count)
    refuse(path, fmt::format("truncated or corrupted: the header announces {} images of {} bytes, "
                             "found {} bytes after it",
                             header.count, kLatticeRecordBytes, payload));
  return header;
}

}  // namespace

struct LatticesWriter::State {
  fs::path path, partial;
  int file = -1;
  Header header;
  int64_t written = 0;  // payload bytes
  ContentHash hash;

  void write(const void* data, size_t bytes, int64_t offset) const {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t done = ::pwrite(file, at, bytes, offset);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0)
        throw IoError(fmt::format("{}: cannot write: {}", partial.string(), file_error(errno)));
      at += done;
      bytes -= static_cast<size_t>(done);
      offset += done;
    }
  }
};

LatticesWriter::LatticesWriter(fs::path path, const LatticeSpec& spec)
    : state_(std::make_unique<State>()) {
  state_->partial = path;
  // Two processes may write the same set: each renames a whole file.
  state_->partial += ".partial-" + unique_ending();
  state_->path = std::move(path);
  state_->header.seed = spec.seed;
  state_->header.first = spec.first;
  state_->header.count = spec.count;
  state_->file = ::open(state_->partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (state_->file < 0)
    throw IoError(
        fmt::format("{}: cannot create: {}", state_->partial.string(), file_error(errno)));
}

LatticesWriter::~LatticesWriter() {
  if (state_->file < 0) return;
  ::close(state_->file);
  ::unlink(state_->partial.c_str());
}

void LatticesWriter::append(std::span<const uint8_t> records) {
  state_->write(records.data(), records.size(),
                static_cast<int64_t>(sizeof(Header)) + state_->written);
  state_->hash.add(records);
  state_->written += std::ssize(records);
}

void LatticesWriter::finish() {
  CHECK(state_->written == state_->header.count * kLatticeRecordBytes, "{} bytes for {} images",
        state_->written, state_->header.count);
  state_->header.payload_hash = state_->hash.value();
  state_->write(&state_->header, sizeof(Header), 0);
  const bool flushed = sync_to_disk(state_->file);
  const bool closed = ::close(std::exchange(state_->file, -1)) == 0;
  if (!flushed || !closed || std::rename(state_->partial.c_str(), state_->path.c_str()) != 0) {
    const int error = errno;
    ::unlink(state_->partial.c_str());
    throw IoError(fmt::format("{}: cannot complete: {}", state_->path.string(), file_error(error)));
  }
}

namespace {

std::unique_ptr<StoredImages> lattices_of(FileBytes file, int64_t first,
                                          std::vector<uint8_t> labels, const ClassLimit& limit) {
  auto set = std::make_unique<StoredImages>(Shape{1, kLatticeSide, kLatticeSide},
                                            limited(lattice_names(), limit));
  const std::string source = file.name();
  set->append({.pixels = std::move(file),
               .first = first + 1,
               .stride = kLatticeRecordBytes,
               .labels = std::move(labels),
               .source = source});
  return set;
}

}  // namespace

std::unique_ptr<StoredImages> open_lattices_file(const fs::path& path, const ClassLimit& limit) {
  FileBytes file = FileBytes::open(path);
  const Header header = checked_file_header(path, file);
  ContentHash hash;
  StridedBytes labels{.first = sizeof(Header), .stride = kLatticeRecordBytes};
  file.walk(sizeof(Header), [&](std::span<const uint8_t> block, int64_t at) {
    hash.add(block);
    labels.look(block, at);
  });
  if (const uint64_t found = hash.value(); found != header.payload_hash)
    refuse(path, fmt::format("corrupted: expected checksum {:016x}, found {:016x}",
                             header.payload_hash, found));
  return lattices_of(std::move(file), sizeof(Header), std::move(labels.bytes), limit);
}

LatticeSpec read_lattices_header(const fs::path& path) {
  const Header header = checked_file_header(path, FileBytes::open(path));
  return {header.seed, header.first, header.count};
}

std::unique_ptr<StoredImages> lattices_from_records(std::vector<uint8_t> records,
                                                    const ClassLimit& limit) {
  StridedBytes labels{.first = 0, .stride = kLatticeRecordBytes};
  labels.look(records, 0);
  return lattices_of(FileBytes::own(std::move(records), "generated lattices"), 0,
                     std::move(labels.bytes), limit);
}

}  // namespace tutti::data
