#include "tutti/base/shared_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tutti {
namespace {

TEST(SharedWork, EachPieceIsDoneOnceWhoeverHelps) {
  SharedWork work;
  std::atomic<bool> over{false};
  std::vector<std::jthread> idle;
  for (int t = 0; t < 3; ++t)
    idle.emplace_back([&] {
      while (!over) work.help();
    });
  for (const size_t pieces : {0u, 1u, 2u, 7u, 1000u})
    for (int run = 0; run < 200; ++run) {
      std::vector<int> done(pieces);  // plain: the thread sanitizer sees it if run() does not wait
      work.run(pieces, [&](size_t i) { ++done[i]; });
      EXPECT_EQ(done, std::vector<int>(pieces, 1));
    }
  over = true;
}

TEST(SharedWork, OthersTakePieces) {
  SharedWork work;
  std::atomic<bool> over{false};
  std::jthread idle([&] {
    while (!over) work.help();
  });
  std::atomic<int> by_others{0};
  const auto owner = std::this_thread::get_id();
  // The owner's piece ends when another thread has taken the other one.
  work.run(2, [&](size_t) {
    if (std::this_thread::get_id() != owner) ++by_others;
    while (by_others == 0) std::this_thread::yield();
  });
  EXPECT_EQ(by_others, 1);
  over = true;
}

TEST(SharedWork, TwoRunsAtOnceDoNotWaitForEachOther) {
  SharedWork work;
  std::vector<std::jthread> threads;
  std::atomic<int> sum{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int run = 0; run < 500; ++run) work.run(5, [&](size_t) { ++sum; });
    });
  threads.clear();
  EXPECT_EQ(sum, 4 * 500 * 5);
}

}  // namespace
}  // namespace tutti
