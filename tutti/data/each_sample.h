#pragma once
// for_each_sample shares work on numbered samples among threads.

#include <cstdint>
#include <functional>

namespace tutti::data {

/// Calls work(0) ... work(count - 1) on `threads` threads. Rethrows the first exception. Every ten
/// seconds it logs how many calls have returned.
void for_each_sample(int64_t count, int threads, const std::function<void(int64_t)>& work);

}  // namespace tutti::data
