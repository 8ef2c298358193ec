#pragma once
// for_each_sample shares work on numbered samples among threads.

#include <cstdint>
#include <functional>

namespace tutti::data {

/// Calls work(0) ... work(count - 1) on `threads` threads. Rethrows the first exception. With
/// `tells` it logs every ten seconds how many calls have returned.
void for_each_sample(int64_t count, int threads, const std::function<void(int64_t)>& work,
                     bool tells = true);

}  // namespace tutti::data
