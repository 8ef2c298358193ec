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
#include "tutti/data/store/shared_memory.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
using CacheClock = std::chrono::steady_clock;

constexpr int64_t kCacheLine = 64;

int64_t whole_lines(size_t bytes) {
  return (static_cast<int64_t>(bytes) + kCacheLine - 1) / kCacheLine * kCacheLine;
}

double seconds_since(CacheClock::time_point start) {
  return std::chrono::duration<double>(CacheClock::now() - start).count();
}

/// The file on the node's disk: slots of one size.
class SlotFile {
 public:
  SlotFile(const fs::path& path, int64_t bytes) : path_(path) {
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const int error = file_ < 0 ? errno : ::posix_fallocate(file_, 0, bytes);
    if (error == 0) return;
    if (file_ >= 0) ::close(file_);
    ::unlink(path.c_str());
    throw IoError(fmt::format(
        "{}: cannot take {:.1f} MiB for the cache: {}; lower data.cache.disk, or name another "
        "folder in data.cache.dir",
        path.string(), static_cast<double>(bytes) / (1 << 20), file_error(error)));
  }
  ~SlotFile() { ::close(file_); }
  SlotFile(const SlotFile&) = delete;
  SlotFile& operator=(const SlotFile&) = delete;

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

/// The shared memory begins with `next`, the first free slot, then has a word for each sample:
/// where it is. A process that ends while it fills a slot leaves the sample as kFilling for ever:
/// it is then read from its file, and nobody waits.
class CachedSet::State {
 public:
  State(std::shared_ptr<const Dataset> all, const CacheSpec& spec,
        std::shared_ptr<ReadCounts> counts)
      : all_(std::move(all)), counts_(std::move(counts)), slot_(slot_bytes(all_->fields())) {
    if (std::ranges::any_of(all_->fields(), &Field::coded))
      throw ConfigError(
          "data.cache does not keep coded images yet, whose samples differ in size: leave it out");
    const int64_t most = std::min<int64_t>(all_->size(), UINT32_MAX - kFirst);
    in_memory_ = std::min(spec.memory_bytes / slot_, most);
    slots_ = in_memory_ + std::min(spec.disk_bytes / slot_, most - in_memory_);
    begin_ = whole_lines((1 + static_cast<size_t>(all_->size())) * sizeof(Word));
    memory_.emplace(spec.name, static_cast<size_t>(begin_ + in_memory_ * slot_));
    try {
      if (slots_ > in_memory_)
        file_.emplace(spec.folder / spec.name, (slots_ - in_memory_) * slot_);
    } catch (...) {
      memory_->remove_name();  // it would stay in the node's memory for ever
      throw;
    }
    int64_t at = 0;
    for (const Field& field : all_->fields()) {
      offsets_.push_back(at);
      at += whole_lines(field.bytes());
    }
  }

  const Dataset& all() const { return *all_; }
  int64_t in_memory() const { return in_memory_; }
  int64_t slots() const { return slots_; }

  void remove_names() const {
    memory_->remove_name();
    if (file_) file_->remove_name();
  }

  /// `self` is what keeps the memory that a sample shows.
  void read(const std::shared_ptr<State>& self, int64_t index, Sample& sample,
            std::span<const FieldRows> rows) {
    const auto start = CacheClock::now();
    const uint32_t word = place(index).load(std::memory_order_acquire);
    if (word >= kFirst && take(self, word - kFirst, sample)) {
      counts_->add(word - kFirst < in_memory_ ? ReadLevel::memory : ReadLevel::node, slot_,
                   seconds_since(start));
      return;
    }
    // What is to be kept is read whole, also where a rank needs some of its rows alone.
    if (word == kEmpty || rows.empty())
      all_->read(index, sample);
    else
      all_->read_rows(index, sample, rows);
    if (word == kEmpty) keep(index, sample);
    counts_->add(ReadLevel::files, 0, seconds_since(start));
  }

 private:
  using Word = std::atomic<uint32_t>;
  static_assert(Word::is_always_lock_free, "processes share them");
  enum : uint32_t { kEmpty = 0, kFilling = 1, kFull = 2, kFirst = 3 };  // kFull: no slot was left

  Word& word_at(int64_t i) const { return reinterpret_cast<Word*>(memory_->data())[i]; }
  Word& next() const { return word_at(0); }
  Word& place(int64_t index) const { return word_at(1 + index); }

  bool take(const std::shared_ptr<State>& self, int64_t slot, Sample& sample) const {
    for (size_t f = 0; f < offsets_.size(); ++f) {
      const size_t bytes = all_->fields()[f].bytes();
      if (slot < in_memory_) {
        sample.show(f, memory_->data() + begin_ + slot * slot_ + offsets_[f], self);
      } else if (!file_->read((slot - in_memory_) * slot_ + offsets_[f], sample.own(f), bytes)) {
        return false;
      }
    }
    return true;
  }

  void keep(int64_t index, const Sample& sample) {
    uint32_t word = kEmpty;
    if (!place(index).compare_exchange_strong(word, kFilling)) return;
    // Looked at before it grows, so that it stays near the end and fits 32 bits.
    const int64_t slot = next().load() < slots_ ? next().fetch_add(1) : slots_;
    if (slot >= slots_) return place(index).store(kFull);
    for (size_t f = 0; f < offsets_.size(); ++f) {
      const size_t bytes = all_->fields()[f].bytes();
      if (slot < in_memory_) {
        std::memcpy(memory_->data() + begin_ + slot * slot_ + offsets_[f], sample.at(f), bytes);
      } else if (!file_->write((slot - in_memory_) * slot_ + offsets_[f], sample.at(f), bytes)) {
        if (!warned_.exchange(true))
          log::warn("data.cache: the disk refuses a sample: {}; it is read from its file again",
                    file_error(errno));
        return place(index).store(kFull);
      }
    }
    place(index).store(static_cast<uint32_t>(slot) + kFirst, std::memory_order_release);
  }

  const std::shared_ptr<const Dataset> all_;
  const std::shared_ptr<ReadCounts> counts_;
  const int64_t slot_;
  int64_t in_memory_ = 0, slots_ = 0, begin_ = 0;
  std::vector<int64_t> offsets_;  // of fields in a slot
  std::optional<SharedMemory> memory_;
  std::optional<SlotFile> file_;
  std::atomic<bool> warned_ = false;
};

CachedSet::CachedSet(std::shared_ptr<const Dataset> all, const CacheSpec& spec,
                     std::shared_ptr<ReadCounts> counts)
    : state_(std::make_shared<State>(std::move(all), spec, std::move(counts))) {}

CachedSet::~CachedSet() = default;

void CachedSet::remove_names() const { state_->remove_names(); }
int64_t CachedSet::size() const { return state_->all().size(); }
const std::vector<Field>& CachedSet::fields() const { return state_->all().fields(); }
int64_t CachedSet::memory_samples() const { return state_->in_memory(); }
int64_t CachedSet::samples() const { return state_->slots(); }

void CachedSet::read(int64_t index, Sample& sample) const { read_rows(index, sample, {}); }

void CachedSet::read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const {
  const std::shared_ptr<State> state = state_;
  state->read(state, index, sample, rows);
}

int64_t CachedSet::slot_bytes(const std::vector<Field>& fields) {
  int64_t bytes = 0;
  for (const Field& field : fields) bytes += whole_lines(field.bytes());
  return bytes;
}

}  // namespace tutti::data
