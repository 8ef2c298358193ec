#include "tutti/cli/job/rank_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"

namespace tutti::cli {
namespace {

constexpr char kTableName[] = "tutti-ranks";

struct Page {
  uint64_t nonce = 0;
  int ranks = 0;
  std::atomic<int> here{0};   // 0: not known yet
  std::atomic<int> ended{0};  // ranks that have left their code
  std::atomic<bool> called_off{false};
};

size_t bytes_of_table(int ranks) {
  return sizeof(Page) + sizeof(RankRow) * static_cast<size_t>(ranks);
}
RankRow* rows_of(void* memory) {
  return reinterpret_cast<RankRow*>(static_cast<std::byte*>(memory) + sizeof(Page));
}
static_assert(sizeof(Page) % alignof(RankRow) == 0);

/// Returns the memory of a table of this size, or MAP_FAILED. Any other kind of file is not
/// touched: opening a device can have consequences.
void* map_table(const std::string& path, size_t bytes) {
  std::error_code error;
  std::string name = std::filesystem::read_symlink(path, error).filename().string();
  if (name.starts_with("memfd:")) name.erase(0, 6);
  if (!name.starts_with(kTableName)) return MAP_FAILED;
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return MAP_FAILED;
  const bool fits = lseek(file, 0, SEEK_END) == static_cast<off_t>(bytes);
  void* memory =
      fits ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  return memory;
}

std::atomic<Page*> own_page{nullptr};
std::atomic<RankRow*> own{nullptr};
std::atomic<bool> leaving{false};  // a thread has begun to leave this process's code
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr int kLeaveMs = 1000;  // microseconds are enough, where the thread has a core

/// Blocks signals to this thread while it lives. A handler may call it.
class NoSignals {
 public:
  NoSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

/// Waits until the code is left: the caller then ends the process.
void wait_until_left(const RankRow& row) noexcept {
  const timespec moment{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int ms = 0; ms < kLeaveMs && row.state != RankState::ended; ++ms)
    nanosleep(&moment, nullptr);
}

}  // namespace

RankTable::RankTable(int ranks) : ranks_(ranks) {
  const size_t bytes = bytes_of_table(ranks);
  file_ = make_nameless_file(kTableName).descriptor;
  if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) == 0)
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory_ == nullptr || memory_ == MAP_FAILED) {
    const int error = errno;
    if (file_ >= 0) close(file_);
    throw DeviceError(fmt::format("cannot make {} bytes of memory to share with {} ranks: {}",
                                  bytes, ranks, file_error(error)));
  }
  auto* page = static_cast<Page*>(memory_);  // zero, as fresh rows are
  page->ranks = ranks;
  if (getrandom(&page->nonce, sizeof page->nonce, 0) != sizeof page->nonce)
    page->nonce =
        static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

RankTable::~RankTable() {
  munmap(memory_, bytes_of_table(ranks_));
  close(file_);
}

std::string RankTable::value() const {
  return fmt::format("{}:{}:{:x}", getpid(), file_, static_cast<Page*>(memory_)->nonce);
}

int RankTable::ranks_here() const {
  const int here = static_cast<Page*>(memory_)->here;
  int joined = 0;  // larger if ranks see this process from containers with host names of their own
  for (int rank = 0; rank < ranks_; ++rank) joined += row(rank).process != 0;
  return here > 0 ? std::max(here, joined) : ranks_;
}

void RankTable::call_off() const { static_cast<Page*>(memory_)->called_off = true; }

const RankRow& RankTable::row(int rank) const {
  CHECK(rank >= 0 && rank < ranks_);
  return rows_of(memory_)[rank];
}

bool own_row::join(const std::string& value, const Place& place) {
  int process = 0, number = 0;
  unsigned long long nonce = 0;
  if (joined() || place.rank < 0 || place.rank >= place.ranks ||
      std::sscanf(value.c_str(), "%d:%d:%llx", &process, &number, &nonce) != 3)
    return false;
  const size_t bytes = bytes_of_table(place.ranks);
  void* memory = map_table(fmt::format("/proc/{}/fd/{}", process, number), bytes);
  if (memory == MAP_FAILED) return false;
  auto* page = static_cast<Page*>(memory);
  RankRow* row = rows_of(memory) + place.rank;
  int nobody = 0;
  if (page->nonce != nonce || page->ranks != place.ranks ||
      !row->process.compare_exchange_strong(nobody, getpid())) {
    munmap(memory, bytes);
    return false;
  }
  if (place.ranks_here > 0) page->here = place.ranks_here;
  row->state = RankState::starting;
  own_page = page;
  own = row;
  return true;
}

bool own_row::joined() noexcept { return own.load() != nullptr; }

bool own_row::called_off() noexcept { return joined() && own_page.load()->called_off; }

void own_row::set_state(RankState state) noexcept {
  if (RankRow* row = own.load()) row->state = state;
}

void own_row::set_run(RunState run) noexcept {
  if (RankRow* row = own.load()) row->run = run;
}

void own_row::note_sent_off() noexcept {
  if (RankRow* row = own.load()) row->sent_off = true;
}

bool own_row::end(int code, std::string_view message, int signal, bool waited) noexcept {
  RankRow* row = own.load();
  if (row == nullptr) return false;
  // The first code counts. No handler may end the process between the claim and the last store.
  const NoSignals no_signals;
  bool nobody = false;
  if (!leaving.compare_exchange_strong(nobody, true)) {
    wait_until_left(*row);
    return true;
  }
  const size_t length = std::min(message.size(), row->message.size() - 1);
  std::copy_n(message.data(), length, row->message.data());
  row->message[length] = 0;
  row->code = code;
  row->signal = signal;
  row->waited = waited;
  row->order = own_page.load()->ended.fetch_add(1) + 1;
  row->state = RankState::ended;
  return true;
}

}  // namespace tutti::cli
