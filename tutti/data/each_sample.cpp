#include "tutti/data/each_sample.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "tutti/base/log.h"

namespace tutti::data {

void for_each_sample(int64_t count, int threads, const std::function<void(int64_t)>& work,
                     bool tells) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::atomic<int64_t> done{0};
  const auto take = [&](bool reports) {
    using Clock = std::chrono::steady_clock;
    auto reported = Clock::now();
    for (int64_t i = next++; i < count; i = next++) try {
        work(i);
        ++done;
        if (!reports || Clock::now() - reported < std::chrono::seconds(10)) continue;
        reported = Clock::now();
        log::info("{} of {} made", done.load(), count);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(take, false);
    take(tells);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tutti::data
