#include "tutti/comm/run/message.h"

#include <gtest/gtest.h>

#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/patience.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

std::span<std::byte> bytes_of(std::vector<int>& values) {
  return std::as_writable_bytes(std::span(values));
}

TEST(Message, ArrivesInOrderAndAsLongAsItIs) {
  run_ranks(3, [](Communicator& c) {
    std::vector<int> data(10);
    if (c.rank() == 0) {
      const auto send = c.plan_send({.peer = 1, .tag = 7, .data = bytes_of(data)});
      for (int k = 1; k <= 5; ++k) {
        data.assign(static_cast<size_t>(2 * k), k);
        send->rebind(bytes_of(data));
        send->run();
      }
    }
    if (c.rank() == 1) {
      const auto receive = c.plan_receive({.peer = 0, .tag = 7, .data = bytes_of(data)});
      for (int k = 1; k <= 5; ++k) {
        receive->run();
        EXPECT_EQ(receive->arrived(), static_cast<size_t>(2 * k) * sizeof(int));
        EXPECT_EQ(data[0], k);
      }
    }
  });
}

TEST(Message, TagsDoNotMix) {
  run_ranks(2, [](Communicator& c) {
    std::vector<int> a{1}, b{2};
    const int peer = 1 - c.rank();
    if (c.rank() == 0) {
      const auto first = c.plan_send({.peer = peer, .tag = 1, .data = bytes_of(a)});
      const auto second = c.plan_send({.peer = peer, .tag = 2, .data = bytes_of(b)});
      first->start();
      second->run();
      first->wait();
    } else {
      const auto second = c.plan_receive({.peer = peer, .tag = 2, .data = bytes_of(b)});
      const auto first = c.plan_receive({.peer = peer, .tag = 1, .data = bytes_of(a)});
      second->run();
      first->run();
      EXPECT_EQ(a[0], 1);
      EXPECT_EQ(b[0], 2);
    }
  });
}

// A send is not complete before its receiver takes the message: the sender cannot run ahead.
TEST(Message, WaitsForItsReceiver) {
  run_ranks(2, [](Communicator& c) {
    std::vector<int> data{1};
    std::vector<double> seconds(1);
    if (c.rank() == 0) {
      const auto send = c.plan_send({.peer = 1, .data = bytes_of(data)});
      send->start();
      for (int k = 0; k < 100; ++k) EXPECT_FALSE(send->test());
      c.barrier();
      send->wait();
    } else {
      const auto receive = c.plan_receive({.peer = 0, .data = bytes_of(data)});
      c.barrier();
      receive->run();
    }
  });
}

TEST(Message, APatientWaitOutlastsTheTimeOut) {
  run_ranks(2, [](Communicator& c) {
    c.set_timeout(patience(0.05));
    std::vector<int> data{c.rank()};
    if (c.rank() == 0) {
      sleep_patiently(0.2);
      c.plan_send({.peer = 1, .data = bytes_of(data)})->run();
    } else {
      c.plan_receive({.peer = 0, .data = bytes_of(data), .patient = true})->run();
      EXPECT_EQ(data[0], 0);
    }
  });
  EXPECT_THROW(run_ranks(2,
                         [](Communicator& c) {
                           c.set_timeout(patience(0.05));
                           std::vector<int> data{1};
                           if (c.rank() == 0) return;
                           c.plan_receive({.peer = 0, .data = bytes_of(data)})->run();
                         }),
               CommError);
}

TEST(Message, RefusesPeersAndTagsThatAreNone) {
  run_ranks(2, [](Communicator& c) {
    EXPECT_THROW(c.plan_send({.peer = c.rank()}), PlanError);
    EXPECT_THROW(c.plan_send({.peer = 2}), PlanError);
    EXPECT_THROW(c.plan_receive({.peer = 1 - c.rank(), .tag = -1}), PlanError);
  });
}

}  // namespace
}  // namespace tutti::comm
