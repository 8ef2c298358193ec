#include "tutti/cli/rank_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti {
namespace {

struct Page {
  std::atomic<int> ended{0};  // ranks that have left their code
  int ranks = 0;
};

size_t bytes_of(int ranks) { return sizeof(Page) + sizeof(RankRow) * static_cast<size_t>(ranks); }
RankRow* rows_of(void* memory) {
  return reinterpret_cast<RankRow*>(static_cast<std::byte*>(memory) + sizeof(Page));
}
static_assert(sizeof(Page) % alignof(RankRow) == 0);

std::atomic<Page*> own_page{nullptr};
std::atomic<RankRow*> own{nullptr};

}  // namespace

RankTable::RankTable(int ranks) : ranks_(ranks) {
  const size_t bytes = bytes_of(ranks);
  file_ = memfd_create("tutti-ranks", MFD_CLOEXEC);
  if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) == 0)
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory_ == nullptr || memory_ == MAP_FAILED) {
    const int error = errno;
    if (file_ >= 0) close(file_);
    throw DeviceError(fmt::format("cannot make {} bytes of memory to share with {} ranks: {}",
                                  bytes, ranks, std::strerror(error)));
  }
  static_cast<Page*>(memory_)->ranks = ranks;  // the rest is zero, as a fresh row is
}

RankTable::~RankTable() {
  munmap(memory_, bytes_of(ranks_));
  close(file_);
}

std::string RankTable::value() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

const RankRow& RankTable::row(int rank) const {
  CHECK(rank >= 0 && rank < ranks_);
  return rows_of(memory_)[rank];
}

bool own_row::join(const std::string& value, int rank, int ranks) {
  if (value.empty() || joined() || rank < 0 || rank >= ranks) return false;
  const int file = open(value.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const size_t bytes = bytes_of(ranks);
  const bool fits = lseek(file, 0, SEEK_END) == static_cast<off_t>(bytes);
  void* memory =
      fits ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return false;
  auto* page = static_cast<Page*>(memory);
  RankRow* row = rows_of(memory) + rank;
  int nobody = 0;
  if (page->ranks != ranks || !row->process.compare_exchange_strong(nobody, getpid())) {
    munmap(memory, bytes);
    return false;
  }
  row->state = RankState::starting;
  own_page = page;
  own = row;
  return true;
}

bool own_row::joined() noexcept { return own.load() != nullptr; }

void own_row::set_state(RankState state) noexcept {
  if (RankRow* row = own.load()) row->state = state;
}

bool own_row::end(int code, std::string_view message, int signal) noexcept {
  RankRow* row = own.load();
  if (row == nullptr) return false;
  if (row->state == RankState::ended) return true;  // the first word counts
  const size_t length = std::min(message.size(), row->message.size() - 1);
  std::copy_n(message.data(), length, row->message.data());
  row->message[length] = 0;
  row->code = code;
  row->signal = signal;
  row->order = own_page.load()->ended.fetch_add(1) + 1;
  row->state = RankState::ended;
  return true;
}

}  // namespace tutti
