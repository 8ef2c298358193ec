#include "tests/multirank/faults.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/patience.h"
#include "tutti/comm/check/arrival.h"
#include "tutti/comm/control/agree.h"

namespace tutti {
namespace {

using comm::Communicator;

bool is_last(const Communicator& c) { return c.rank() == c.size() - 1; }

// An allreduce in its own memory, run step by step; the fault happens before the last step.
class Steps {
 public:
  explicit Steps(Communicator& c, comm::CollectiveSpec spec = {})
      : data_(spec.count == 0 ? 100000 : spec.count, 1.0f) {
    spec.name = "bucket 3";
    spec.kind = comm::Collective::allreduce;
    spec.count = data_.size();
    spec.output = data_.data();
    operation_ = c.plan(spec);
  }
  void run(int steps, const std::function<void()>& fault) {
    for (int step = 0; step < steps; ++step) one();
    fault();
    one();
  }
  void one() { operation_->run(); }

 private:
  std::vector<float> data_;
  std::unique_ptr<comm::CollectiveOperation> operation_;
};

// Simulates a link or memory that changes data: flips a bit of a large message that has arrived,
// once, in the channel's sixth round.
class FaultyChannel final : public comm::ChannelAround {
 public:
  FaultyChannel(std::unique_ptr<comm::Channel> inner, std::vector<comm::RoundOfMessages> rounds)
      : ChannelAround(std::move(rounds), std::move(inner)) {}
  void post(size_t round) override {
    ++posted_;
    ChannelAround::post(round);
  }
  bool received() override {
    if (!inner_->received()) return false;
    const auto& receives = rounds_[round_].receives;
    if (done_ || posted_ < 6 || receives.empty() || receives[0].bytes <= 70000) return true;
    const_cast<std::byte*>(inner_->where(0))[70000] ^= std::byte{1};
    done_ = true;
    return true;
  }

 private:
  int posted_ = 0;
  bool done_ = false;
};

// For a rank without an error of its own while the others end the job. mpirun of Open MPI 4.1 dies,
// or hangs, when it ends a job of which one rank is in MPI_Finalize.
void await_end() { sleep_patiently(kHangSeconds); }

// A launcher lets a stopped process continue in order to end it.
void stop_until_ended(int signal) {
  raise(signal);
  await_end();
}

void stopped(Communicator& c) {
  c.set_timeout(patience(1));
  Steps(c).run(5, [&] {
    if (is_last(c)) stop_until_ended(SIGSTOP);
  });
}

void goes_on(Communicator& c) {
  c.set_timeout(patience(1));
  c.set_on_timeout(comm::OnTimeout::go_on);
  Steps(c).run(5, [&] { sleep_patiently(is_last(c) ? 4 : 0); });
}

void slow(Communicator& c) {
  comm::ArrivalRecord arrivals(c, 1, 100);
  Steps steps(c);
  for (int step = 0; step < 4; ++step) {
    if (is_last(c)) sleep_patiently(0.5);
    arrivals.note(0);
    steps.one();
  }
  const comm::ArrivalSummary summary = arrivals.collect();
  if (c.rank() == 0 && summary.straggler() != nullptr)
    std::printf("%s\n", to_string(*summary.straggler(), summary, c).c_str());
}

// Only the part that waits for the last rank times out; the others are notified.
void part_late(Communicator& c) {
  const auto part = c.split(c.rank() % 2, c.rank(), c.rank() % 2 == 0 ? "data 0" : "data 1");
  part->set_timeout(patience(1));
  Steps(*part).run(5, [&] { sleep_patiently(is_last(c) ? 20 : 0); });
  c.barrier();
}

void flip(Communicator& c) {
  if (is_last(c))
    c.channels().decorate([](Communicator&, std::vector<comm::RoundOfMessages> rounds,
                             const comm::OpenChannel& inner) {
      return std::make_unique<FaultyChannel>(inner(rounds), rounds);
    });
  c.set_check();
  Steps(c, {.count = 200000, .algorithm = "recursive_doubling"}).run(5, [] {});
}

// The first rank sends less, or more, than all others expect.
void other_size(Communicator& c, size_t sent) {
  c.set_timeout(kHangSeconds);
  std::vector<std::byte> bytes(std::max<size_t>(sent, 200));
  comm::RoundOfMessages round;
  if (c.rank() == 0)
    for (int p = 1; p < c.size(); ++p)
      round.sends.push_back({.peer = p, .data = bytes.data(), .bytes = sent});
  else
    round.receives.push_back({.peer = 0, .data = bytes.data(), .bytes = 200});
  const auto channel = c.channels().open({round});
  c.channels().connect();
  channel->post(0);
  c.wait_for([&] { return channel->received() && channel->sent(); },
             [&] {
               return comm::Pending{.operation = "a message of another size",
                                    .sequence = 1,
                                    .arrived = {},
                                    .missing = channel->missing().not_arrived};
             });
  if (c.rank() == 0) await_end();
}

// Sends a message between two ranks that is longer than its receiver's buffer.
void no_room(Communicator& c) {
  c.set_timeout(kHangSeconds);
  std::vector<std::byte> bytes(12);
  if (c.rank() == 0) {
    const auto message = c.plan_send({.peer = c.size() - 1, .data = bytes});
    message->start();
    await_end();
  }
  if (c.rank() + 1 < c.size()) await_end();
  c.plan_receive({.peer = 0, .data = std::span(bytes).first(8)})->run();
}

// The last rank calls a barrier where the others broadcast.
void mismatched_broadcast(Communicator& c) {
  c.set_timeout(kHangSeconds);
  int value = 7;
  if (is_last(c))
    c.barrier();
  else
    c.broadcast_value(value, 0);
  c.barrier();
}

// Rank 0 works for longer than the time-out, or stops or dies in the middle of it.
void decides(Communicator& c, int signal) {
  c.set_timeout(patience(2));
  const std::string answer = comm::decide(c, "measuring kernels", [&] {
    sleep_patiently(4);
    if (signal != 0) stop_until_ended(signal);
    return std::string("the fastest");
  });
  if (answer != "the fastest") throw InternalError("rank 0 decided on '" + answer + "'");
}

// Runs until it is killed from outside, or a minute has passed.
void endless(Communicator& c) {
  Steps steps(c);
  const auto window = c.allocate(1 << 20);
  c.barrier();
  if (c.rank() == 0) {
    std::printf("endless: all ranks are exchanging\n");
    std::fflush(stdout);
  }
  for (int step = 0; step < 600; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    steps.one();
  }
}

void other_plan(Communicator& c, comm::CollectiveSpec of_last) {
  c.set_timeout(kHangSeconds);
  Steps(c, is_last(c) ? of_last : comm::CollectiveSpec{.count = 1000, .algorithm = "pairwise"})
      .run(1, [] {});
}

const std::map<std::string, void (*)(Communicator&)> kFaults = {
    {"stopped", stopped},
    {"goes_on", goes_on},
    {"slow", slow},
    {"part_late", part_late},
    {"flip", flip},
    {"endless", endless},
    {"short_message", [](Communicator& c) { other_size(c, 100); }},
    {"long_message", [](Communicator& c) { other_size(c, 300); }},
    {"no_room", no_room},
    {"mismatched_broadcast", mismatched_broadcast},
    {"decides", [](Communicator& c) { decides(c, 0); }},
    {"decider_stopped", [](Communicator& c) { decides(c, SIGSTOP); }},
    {"decider_killed", [](Communicator& c) { decides(c, SIGKILL); }},
    {"other_count",
     [](Communicator& c) { other_plan(c, {.count = 1001, .algorithm = "pairwise"}); }},
    {"other_type",
     [](Communicator& c) {
       other_plan(c, {.element = comm::Element::i32, .count = 1000, .algorithm = "pairwise"});
     }},
    {"other_algorithm",
     [](Communicator& c) { other_plan(c, {.count = 1000, .algorithm = "ring"}); }},
};

}  // namespace

bool cause_fault(const std::string& name, Communicator& communicator) {
  const auto found = kFaults.find(name);
  if (found == kFaults.end()) return false;
  found->second(communicator);
  return true;
}

}  // namespace tutti
