#include "tutti/base/shared_work.h"

#include <thread>

namespace tutti {

void SharedWork::run(size_t pieces, const std::function<void(size_t)>& body) {
  if (pieces <= 1 || busy_.exchange(true, std::memory_order_acquire)) {
    for (size_t i = 0; i < pieces; ++i) body(i);
    return;
  }
  next_.store(0, std::memory_order_relaxed);
  pieces_.store(pieces, std::memory_order_relaxed);
  body_.store(&body);
  for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < pieces;) body(i);
  // Threads that come later find nothing to do; threads inside are waited for.
  body_.store(nullptr);
  while (inside_.load() != 0) std::this_thread::yield();
  busy_.store(false, std::memory_order_release);
}

void SharedWork::take_part() {
  inside_.fetch_add(1);
  if (const auto* const body = body_.load()) {
    const size_t pieces = pieces_.load(std::memory_order_relaxed);
    for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < pieces;) (*body)(i);
  }
  inside_.fetch_sub(1);
}

}  // namespace tutti
