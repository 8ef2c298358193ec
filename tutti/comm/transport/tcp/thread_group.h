#pragma once
// Groups for tests: ranks are threads of one process, each with connections of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/tcp/store_communicator.h"

namespace tutti::comm {

// Runs `rank` on that many threads; returns the text of each rank's exception.
inline std::vector<std::string> run_threads(int size, const std::function<void(int)>& rank) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int p = 0; p < size; ++p)
      threads.emplace_back([&, p] {
        try {
          rank(p);
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(p)] = error.what();
        }
      });
  }
  return errors;
}

inline StoreOptions over_tcp(double timeout = kHangSeconds, bool shared_memory = false) {
  return {.process = {.shared_memory = shared_memory, .timeout = timeout, .address = "127.0.0.1"},
          .secret = "s"};
}
inline StoreOptions over_shared_memory() { return over_tcp(kHangSeconds, true); }

inline void expect_none(const std::vector<std::string>& errors) {
  for (size_t p = 0; p < errors.size(); ++p) EXPECT_EQ(errors[p], "") << "rank " << p;
}

inline void run_group(int size, const std::function<void(Communicator&)>& work,
                      const StoreOptions& options = over_tcp()) {
  LocalStore store;
  expect_none(run_threads(size, [&](int p) {
    const auto c = make_store_communicator(store, "job", p, size, options);
    work(*c);
  }));
}

inline void expect(bool holds, const std::string& what) {
  if (!holds) throw InternalError("failed: " + what);
}

inline void check_control(Communicator& c) {
  const auto squares = c.allgather_value(c.rank() * c.rank());
  for (int p = 0; p < c.size(); ++p) expect(squares[static_cast<size_t>(p)] == p * p, "allgather");
  for (int root = 0; root < c.size(); ++root) {
    std::vector<int> data(30000, c.rank() == root ? root + 5 : -1);
    c.broadcast(std::as_writable_bytes(std::span(data)), root);
    expect(data == std::vector<int>(30000, root + 5), "broadcast");
  }
  expect(c.most(c.rank()) == c.size() - 1, "most");
  c.barrier();
}

inline void check_sums(Communicator& c, size_t count) {
  std::vector<float> x(count);
  const auto sum = c.plan({.kind = Collective::allreduce, .count = count, .output = x.data()});
  for (int round = 0; round < 3; ++round) {
    std::iota(x.begin(), x.end(), static_cast<float>(c.rank() + round));
    if (count > 1000) std::ranges::fill(x, static_cast<float>(c.rank() + round));
    sum->run();
    float expected = 0;
    for (int p = 0; p < c.size(); ++p) expected += static_cast<float>(p + round);
    for (size_t i = 0; i < count; ++i)
      expect(
          x[i] == (count > 1000 ? expected
                                : expected + static_cast<float>(i) * static_cast<float>(c.size())),
          "allreduce");
  }
}

}  // namespace tutti::comm
