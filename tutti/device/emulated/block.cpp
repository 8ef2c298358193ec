#include "tutti/device/emulated/block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

#include "tutti/base/error.h"

namespace tutti::device {

void Block::begin(const DeviceFunction& function, const void* arguments) {
  kernel_ = static_cast<const EmulatedKernel*>(function.entry);
  arguments_ = arguments;
  count_ = function.threads;
  shared_.clear();
  while (threads_.size() < count_) threads_.emplace_back();
  const auto in_order = [](std::vector<unsigned>& list, unsigned count) {
    list.resize(count);
    std::iota(list.begin(), list.end(), 0u);
  };
  warps_.resize((count_ + kWarp - 1) / kWarp);
  in_order(warp_order_, static_cast<unsigned>(warps_.size()));
  in_order(lane_order_, kWarp);
}

void Block::run(Chance& chance) {
  for (const Shared& s : shared_) std::memset(s.memory.get(), 0xFF, s.bytes);
  std::ranges::fill(warps_, Warp{});
  if (count_ % kWarp != 0) warps_.back().gone = ~0u << count_ % kWarp;
  left_ = count_;
  for (unsigned t = 0; t < count_; ++t) {
    threads_[t].fiber->begin(run_thread, this);
    set_ready(t);
  }
  while (left_ > 0) {
    bool moved = false;
    chance.shuffle(warp_order_);
    for (const unsigned warp : warp_order_) {
      // One warp may run far ahead of the others.
      for (bool goes_on = true; goes_on && warps_[warp].ready > 0; goes_on = chance.below(8) > 0) {
        sweep(warp, chance);
        moved = true;
      }
    }
    if (!moved) open_barrier();
  }
}

void Block::sweep(unsigned warp, Chance& chance) {
  chance.shuffle(lane_order_);
  for (const unsigned lane : lane_order_) {
    const unsigned t = warp * kWarp + lane;
    if (t >= count_ || threads_[t].at != At::ready) continue;
    now_ = t;
    thread_place.thread.x = t;
    threads_[t].fiber->resume();
    if (error_) abandon(std::exchange(error_, nullptr));
  }
}

void Block::run_thread(void* block) noexcept {
  Block& self = *static_cast<Block*>(block);
  try {
    self.kernel_->thread(self.arguments_);
  } catch (...) {
    self.error_ = std::current_exception();
  }
  self.threads_[self.now_].at = At::ended;
  Warp& warp = self.warps_[self.now_ / kWarp];
  --warp.ready;
  warp.gone |= 1u << self.now_ % kWarp;
  --self.left_;
}

void Block::set_ready(unsigned thread) {
  threads_[thread].at = At::ready;
  ++warps_[thread / kWarp].ready;
}

void Block::wait_at(At at, int line) {
  Thread& self = threads_[now_];
  self.at = at;
  self.line = line;
  --warps_[now_ / kWarp].ready;
}

void Block::meet(int line) {
  Thread& self = threads_[now_];
  wait_at(At::barrier, line);
  self.fiber->leave();
}

void Block::open_barrier() {
  for (unsigned t = 0; t < count_; ++t)
    if (threads_[t].at != At::barrier || threads_[t].line != threads_[0].line)
      abandon(std::make_exception_ptr(DeviceError(waiting_text())));
  for (unsigned t = 0; t < count_; ++t) set_ready(t);
}

void Block::abandon(const std::exception_ptr& error) {
  threads_.clear();  // the others end where they are
  std::rethrow_exception(error);
}

void* Block::shared(const void* site, size_t bytes) {
  size_t sum = bytes;
  for (const Shared& s : shared_) {
    if (s.site == site) return s.memory.get();
    sum += s.bytes;
  }
  if (sum > kMostShared)
    kernel_fault(fmt::format("{} bytes of shared memory, of at most {}", sum, kMostShared));
  shared_.push_back({site, bytes, std::make_unique_for_overwrite<std::byte[]>(bytes)});
  std::memset(shared_.back().memory.get(), 0xFF, bytes);  // NaN
  return shared_.back().memory.get();
}

void Block::exchange(const Exchange& exchange) {
  const unsigned lane = now_ % kWarp;
  Warp& warp = warps_[now_ / kWarp];
  const auto refuse = [&](const std::string& text) {
    kernel_fault(
        fmt::format("line {}: the shuffle's mask {:#x} {}", exchange.line, exchange.mask, text));
  };
  if (!(exchange.mask >> lane & 1u))
    refuse(fmt::format("leaves out the thread's own lane {}", lane));
  if (!(exchange.mask >> exchange.source & 1u))
    refuse(fmt::format("leaves out lane {}, which the thread reads", exchange.source));
  if (const unsigned gone = exchange.mask & warp.gone)
    refuse(fmt::format("names lane {}, which has ended or does not exist", std::countr_zero(gone)));
  Thread& self = threads_[now_];
  self.part = exchange;
  wait_at(At::exchange, exchange.line);
  warp.arrived |= 1u << lane;
  if ((warp.arrived & exchange.mask) == exchange.mask) hand_over(now_ / kWarp, exchange);
  self.fiber->leave();
}

void Block::hand_over(unsigned warp, const Exchange& exchange) {
  for (unsigned left = exchange.mask; left != 0; left &= left - 1) {
    const unsigned t = warp * kWarp + static_cast<unsigned>(std::countr_zero(left));
    const Exchange& part = threads_[t].part;
    if (part.mask != exchange.mask || part.bytes != exchange.bytes)
      kernel_fault(fmt::format(
          "line {}: a shuffle of {} bytes with mask {:#x} meets one of {} "
          "bytes with mask {:#x}, of thread {} in line {}",
          exchange.line, exchange.bytes, exchange.mask, part.bytes, part.mask, t, part.line));
    std::memcpy(part.theirs, threads_[warp * kWarp + part.source].part.mine, part.bytes);
    set_ready(t);
  }
  warps_[warp].arrived &= ~exchange.mask;
}

std::string Block::waiting_text() const {
  struct Group {
    unsigned first, count;
  };
  std::map<std::tuple<At, int, unsigned>, Group> groups;
  for (unsigned t = 0; t < count_; ++t) {
    const Thread& thread = threads_[t];
    const int line = thread.at == At::ended ? 0 : thread.line;
    const unsigned mask = thread.at == At::exchange ? thread.part.mask : 0;
    ++groups.try_emplace({thread.at, line, mask}, Group{t, 0}).first->second.count;
  }
  std::string text;
  for (const auto& [place, group] : groups) {
    const auto& [at, line, mask] = place;
    text += fmt::format("{} {} ", text.empty() ? ":" : ",", group.count);
    if (at == At::ended) text += "have ended";
    if (at == At::barrier) text += fmt::format("are at the barrier of line {}", line);
    if (at == At::exchange)
      text += fmt::format("are in the shuffle of line {} with mask {:#x}", line, mask);
    text += fmt::format(" (from thread {} on)", group.first);
  }
  return fmt::format("{}: of {} threads some wait for others that do not come{}", place_of_block(),
                     count_, text);
}

}  // namespace tutti::device
