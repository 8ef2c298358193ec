#include "tutti/data/store/sample_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/own_file.h"
#include "tutti/data/store/shared_memory.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
using CacheClock = std::chrono::steady_clock;

double seconds_since(CacheClock::time_point start) {
  return std::chrono::duration<double>(CacheClock::now() - start).count();
}

/// The file on the node's disk.
class CacheFile {
 public:
  CacheFile(const fs::path& path, int64_t bytes) : path_(path) {
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    file_ = open_own_file(path, O_RDWR | O_CREAT);
    const int error = ::posix_fallocate(file_, 0, bytes);
    if (error == 0) return;
    ::close(file_);
    ::unlink(path.c_str());
    throw IoError(fmt::format(
        "{}: cannot take {:.1f} MiB for the cache: {}; lower data.cache.disk, or name another "
        "folder in data.cache.dir",
        path.string(), static_cast<double>(bytes) / (1 << 20), file_error(error)));
  }
  ~CacheFile() { ::close(file_); }
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  void remove_name() const { ::unlink(path_.c_str()); }
  /// False where the disk refuses.
  bool write(int64_t at, const void* from, size_t bytes) const {
    return ::pwrite(file_, from, bytes, at) == static_cast<ssize_t>(bytes);
  }
  bool read(int64_t at, void* to, size_t bytes) const {
    return ::pread(file_, to, bytes, at) == static_cast<ssize_t>(bytes);
  }

 private:
  fs::path path_;
  int file_ = -1;
};

}  // namespace

/// The shared memory begins with the lines taken in memory and in the file, then has a word for
/// each sample: its place in lines, where lines of the file follow those of memory. A process that
/// ends while it fills a place leaves the sample as kFilling for ever: the sample is then read from
/// its file, and nobody waits.
class CachedSet::State {
 public:
  State(std::shared_ptr<const Dataset> all, const CacheSpec& spec,
        std::shared_ptr<ReadCounts> counts)
      : all_(std::move(all)), counts_(std::move(counts)), peers_(spec.peers),
        packing_(all_->fields()) {
    reserve(spec);
    begin_ =
        PackedSample::whole_lines((kPlaces + all_->size()) * static_cast<int64_t>(sizeof(Word)));
    memory_.emplace(spec.name, static_cast<size_t>(begin_ + memory_bytes()));
    try {
      if (disk_lines_ > 0) file_.emplace(spec.folder / spec.name, disk_bytes());
    } catch (...) {
      memory_->remove_name();  // it would stay in the node's memory for ever
      throw;
    }
  }

  const Dataset& all() const { return *all_; }
  int64_t memory_bytes() const { return memory_lines_ * kLine; }
  int64_t disk_bytes() const { return disk_lines_ * kLine; }

  void remove_names() const {
    memory_->remove_name();
    if (file_) file_->remove_name();
  }

  /// `self` keeps the memory that a sample shows.
  void read(const std::shared_ptr<State>& self, int64_t index, Sample& sample,
            std::span<const FieldRows> rows) {
    const auto start = CacheClock::now();
    const uint64_t word = place(index).load(std::memory_order_acquire);
    if (word >= kFirst && take(self, word - kFirst, sample)) {
      counts_->add(level_of(word - kFirst), packing_.bytes(sample), seconds_since(start));
      return;
    }
    if (peers_ && index % peers_->nodes() != peers_->node() && take_from_peer(index, sample)) {
      counts_->add(ReadLevel::peers, packing_.bytes(sample), seconds_since(start));
      return;
    }
    // A sample that will be kept is read whole, even if a rank needs only some of its rows.
    const bool keeps = word == kEmpty && may_keep(index);
    if (keeps || rows.empty())
      all_->read(index, sample);
    else
      all_->read_rows(index, sample, rows);
    if (keeps) keep(index, sample);
    counts_->add(ReadLevel::files, 0, seconds_since(start));
  }

  bool serve(const std::shared_ptr<State>& self, int64_t index, std::vector<std::byte>& packed) {
    if (index < 0 || index >= all_->size()) return false;
    Sample sample(all_->fields());
    const auto start = CacheClock::now();
    uint64_t word = place(index).load(std::memory_order_acquire);
    if (word == kFull) return false;
    if (word < kFirst || !take(self, word - kFirst, sample)) {
      all_->read(index, sample);
      keep(index, sample);
      counts_->add(ReadLevel::files, 0, seconds_since(start));
    }
    packed.resize(static_cast<size_t>(packing_.bytes(sample)));
    packing_.pack(sample, packed.data());
    return true;
  }

 private:
  using Word = std::atomic<uint64_t>;
  static_assert(Word::is_always_lock_free, "processes share them");
  enum : uint64_t { kEmpty = 0, kFilling = 1, kFull = 2, kFirst = 3 };  // kFull: there was no space
  static constexpr int64_t kLine = PackedSample::kLine, kPlaces = 2;

  void reserve(const CacheSpec& spec) {
    memory_lines_ = std::max<int64_t>(spec.memory_bytes, 0) / kLine;
    disk_lines_ = std::max<int64_t>(spec.disk_bytes, 0) / kLine;
    if (packing_.varies()) return;
    const int64_t each = std::max<int64_t>(packing_.bytes() / kLine, 1);
    const int64_t in_memory = std::min(memory_lines_ / each, all_->size());
    const int64_t on_disk = std::min(disk_lines_ / each, all_->size() - in_memory);
    memory_lines_ = in_memory * each;
    disk_lines_ = on_disk * each;
    holds_all_ = in_memory + on_disk == all_->size();
  }

  Word& word_at(int64_t i) const { return reinterpret_cast<Word*>(memory_->data())[i]; }
  Word& place(int64_t index) const { return word_at(kPlaces + index); }
  bool in_memory(uint64_t line) const { return line < static_cast<uint64_t>(memory_lines_); }
  ReadLevel level_of(uint64_t line) const {
    return in_memory(line) ? ReadLevel::memory : ReadLevel::node;
  }
  std::byte* memory_at(uint64_t line) const {
    return memory_->data() + begin_ + static_cast<int64_t>(line) * kLine;
  }
  int64_t file_at(uint64_t line) const {
    return (static_cast<int64_t>(line) - memory_lines_) * kLine;
  }
  /// Keeps samples of other nodes only if they take no space from its own.
  bool may_keep(int64_t index) const {
    return !peers_ || holds_all_ || index % peers_->nodes() == peers_->node();
  }

  bool take(const std::shared_ptr<State>& self, uint64_t line, Sample& sample) const {
    if (in_memory(line)) {
      packing_.show(memory_at(line), self, sample);
      return true;
    }
    return packing_.unpack([&](int64_t at, void* to,
                               size_t bytes) { return file_->read(file_at(line) + at, to, bytes); },
                           sample);
  }

  bool take_from_peer(int64_t index, Sample& sample) {
    thread_local std::vector<std::byte> packed;
    if (!peers_->get(index, packed)) return false;
    const bool whole = packing_.unpack(
        [&](int64_t at, void* to, size_t bytes) {
          if (at + static_cast<int64_t>(bytes) > std::ssize(packed)) return false;
          if (bytes > 0) std::memcpy(to, packed.data() + at, bytes);
          return true;
        },
        sample);
    if (whole && may_keep(index)) keep(index, sample);
    return whole;
  }

  /// Claims consecutive free lines and returns the first; none if there are too few.
  std::optional<uint64_t> claim(int64_t lines) const {
    const auto claim_of = [&](int64_t which, int64_t all) -> std::optional<uint64_t> {
      Word& taken = word_at(which);
      uint64_t first = taken.load();
      do {
        if (first + static_cast<uint64_t>(lines) > static_cast<uint64_t>(all)) return {};
      } while (!taken.compare_exchange_weak(first, first + static_cast<uint64_t>(lines)));
      return first;
    };
    if (const auto first = claim_of(0, memory_lines_)) return first;
    if (const auto first = claim_of(1, disk_lines_))
      return *first + static_cast<uint64_t>(memory_lines_);
    return {};
  }

  void keep(int64_t index, const Sample& sample) {
    uint64_t word = kEmpty;
    if (!place(index).compare_exchange_strong(word, kFilling)) return;
    const int64_t bytes = packing_.bytes(sample);
    const auto line = claim(bytes / kLine);
    if (!line) return place(index).store(kFull);
    if (in_memory(*line)) {
      packing_.pack(sample, memory_at(*line));
    } else {
      std::vector<std::byte> packed(static_cast<size_t>(bytes));
      packing_.pack(sample, packed.data());
      if (!file_->write(file_at(*line), packed.data(), packed.size())) {
        if (!warned_.exchange(true))
          log::warn("data.cache: the disk refuses a sample: {}; it is read from its file again",
                    file_error(errno));
        return place(index).store(kFull);
      }
    }
    place(index).store(*line + kFirst, std::memory_order_release);
  }

  const std::shared_ptr<const Dataset> all_;
  const std::shared_ptr<ReadCounts> counts_;
  const std::shared_ptr<CachePeers> peers_;
  const PackedSample packing_;
  int64_t memory_lines_ = 0, disk_lines_ = 0, begin_ = 0;
  bool holds_all_ = false;
  std::optional<SharedMemory> memory_;
  std::optional<CacheFile> file_;
  std::atomic<bool> warned_ = false;
};

CachedSet::CachedSet(std::shared_ptr<const Dataset> all, const CacheSpec& spec,
                     std::shared_ptr<ReadCounts> counts)
    : state_(std::make_shared<State>(std::move(all), spec, std::move(counts))) {}

CachedSet::~CachedSet() = default;

void CachedSet::remove_names() const { state_->remove_names(); }
int64_t CachedSet::size() const { return state_->all().size(); }
const std::vector<Field>& CachedSet::fields() const { return state_->all().fields(); }
std::vector<SamplesOfFile> CachedSet::files() const { return state_->all().files(); }
SampleOrigins CachedSet::origins() const { return state_->all().origins(); }
int64_t CachedSet::memory_bytes() const { return state_->memory_bytes(); }
int64_t CachedSet::disk_bytes() const { return state_->disk_bytes(); }

void CachedSet::read(int64_t index, Sample& sample) const { read_rows(index, sample, {}); }

void CachedSet::read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const {
  const std::shared_ptr<State> state = state_;
  state->read(state, index, sample, rows);
}

bool CachedSet::serve(int64_t index, std::vector<std::byte>& packed) const {
  const std::shared_ptr<State> state = state_;
  return state->serve(state, index, packed);
}

}  // namespace tutti::data
