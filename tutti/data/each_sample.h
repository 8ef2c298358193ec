#pragma once
// for_each_sample: work on numbered samples, shared among threads.

#include <cstdint>
#include <functional>

namespace tutti::data {

/// Calls work(0) ... work(count - 1), on `threads` threads. Throws what the first one threw.
/// Every ten seconds the log says how many have returned.
void for_each_sample(int64_t count, int threads, const std::function<void(int64_t)>& work);

}  // namespace tutti::data
