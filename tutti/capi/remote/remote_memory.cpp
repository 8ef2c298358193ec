#include "tutti/capi/remote/remote_memory.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/capi/remote/lane.h"
#include "tutti/capi/remote/own_memory.h"
#include "tutti/capi/remote/service.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/run/plan_error.h"

namespace tutti::capi {
namespace {

constexpr auto kLookForTheLost = std::chrono::milliseconds(200);

}  // namespace

RemoteMemory::RemoteMemory(comm::Communicator& communicator, size_t bytes)
    : communicator_(communicator),
      sizes_(communicator.allgather_value(static_cast<uint64_t>(bytes))),
      window_(communicator.allocate(bytes, comm::PeerAccess::write)), ways_{.communicator =
                                                                                communicator,
                                                                            .messages = {},
                                                                            .lost = {}} {
  communicator.channels().take_back();
  for (int* const tag : {&ways_.requests, &ways_.to_target, &ways_.to_origin})
    *tag = comm::Wire::tag_of_channel(numbers_.emplace_back(communicator.channels().take_number()));
  ways_.messages = [&communicator] { return communicator.messages(); };
  ways_.lost = [&communicator](int rank) {
    return communicator.lost_peer(std::span<const int>(&rank, 1));
  };
  own_ = std::make_unique<remote::OwnMemory>(communicator, data());
  if (bytes > 0 && communicator.size() > 1) {
    service_ = std::make_unique<remote::Service>(
        ways_, *own_, communicator.inbox(remote::kMessage, ways_.requests));
    service_->start();
  }
  communicator.barrier();  // from here on requests may come
}

RemoteMemory::~RemoteMemory() {
  bool clean = std::uncaught_exceptions() == 0;
  try {
    if (service_) clean = service_->finish() && clean;
  } catch (const std::exception&) {
    clean = false;  // the owner has the error already, or never asked
  }
  for (auto& [rank, lane] : lanes_) clean &= !lane.broken();
  for (const int number : numbers_) communicator_.channels().give_back(number, clean);
}

std::span<std::byte> RemoteMemory::data() const { return {window_->data(), window_->bytes()}; }

remote::Lane& RemoteMemory::lane_to(int rank) {
  if (rank < 0 || rank >= communicator_.size())
    throw comm::PlanError(fmt::format("{}: there is no rank {} among {} that could expose memory",
                                      communicator_.who(), rank, communicator_.size()));
  return lanes_[rank];
}

std::unique_ptr<RemoteAccess> RemoteMemory::plan(Access access, const RemoteSpec& spec) {
  check_service();
  return std::make_unique<RemoteAccess>(*this, access, spec);
}
std::unique_ptr<RemoteAccess> RemoteMemory::plan_put(const RemoteSpec& spec) {
  return plan(Access::put, spec);
}
std::unique_ptr<RemoteAccess> RemoteMemory::plan_get(const RemoteSpec& spec) {
  return plan(spec.atomic ? Access::atomic_get : Access::get, spec);
}
std::unique_ptr<RemoteAccess> RemoteMemory::plan_accumulate(const RemoteSpec& spec) {
  return plan(Access::accumulate, spec);
}
std::unique_ptr<RemoteAccess> RemoteMemory::plan_fetch(const RemoteSpec& spec) {
  return plan(Access::fetch, spec);
}

// The owner gets an error in serving others at its next call.
void RemoteMemory::check_service() {
  if (service_) service_->test();
}

uint64_t RemoteMemory::accumulates() const { return own_->accumulates(); }

void RemoteMemory::wait_for_accumulates(uint64_t count, std::span<const int> from) {
  using Clock = std::chrono::steady_clock;
  auto next_look = Clock::now() + kLookForTheLost;
  const auto pending = [&] {
    return comm::Pending{.operation = "accumulate into this rank's memory",
                         .sequence = own_->accumulates() + 1,
                         .arrived = {},
                         .missing = {}};
  };
  // Each wait is for the next accumulate, because longer waits poll less often.
  while (own_->accumulates() < count) {
    const uint64_t seen = own_->accumulates();
    const auto done = [&] {
      check_service();
      if (own_->accumulates() != seen) return true;
      if (Clock::now() < next_look) return false;
      next_look = Clock::now() + kLookForTheLost;
      if (const std::string lost = communicator_.lost_peer(from);
          !lost.empty() && own_->accumulates() == seen)
        throw CommError(fmt::format("{}: {}: accumulate number {} into this rank's memory: {}",
                                    communicator_.who(), communicator_.describe_group(), seen + 1,
                                    lost));
      return false;
    };
    communicator_.wait_for(done, pending, std::numeric_limits<double>::infinity());
  }
}

RemoteMemory::Hold::Hold(remote::OwnMemory& own) : own_(own) { own_.hold(); }
RemoteMemory::Hold::~Hold() { own_.release(); }

RemoteMemory::Taken RemoteMemory::taken() const {
  return service_ ? Taken{service_->most_slots(), service_->most_room()} : Taken{};
}

}  // namespace tutti::capi
