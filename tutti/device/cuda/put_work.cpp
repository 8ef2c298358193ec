#include "tutti/device/cuda/put_work.h"

#include <utility>

namespace tutti::device {

void HostFailure::keep(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
}

void HostFailure::rethrow() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void HostCall::run(void* call) noexcept {
  auto& self = *static_cast<HostCall*>(call);
  try {
    self.work_->run();
  } catch (...) {
    self.failure_->keep(std::current_exception());
  }
  self.has_run_ = true;  // the last access: whoever sees it may end this
}

void PutWork::add_replay(const PutWork& recorded) {
  launches += recorded.launches;
  copies += recorded.copies;
  copied_bytes += recorded.copied_bytes;
  fills += recorded.fills;
  host_work += recorded.host_work;
  ++replays;
}

}  // namespace tutti::device
