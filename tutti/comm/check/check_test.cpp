// Tests both halves of Communicator::set_check: checksums of messages (checked_channel.h) and the
// comparison of results (result_check.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

using testing::Each;
using testing::MatchesRegex;

// A fault on one rank: `change` is applied once to the first message that it receives in `round`,
// in the memory where it will be read.
struct Fault {
  int rank = 1;
  size_t round = 0;
  std::function<void(std::byte*)> change;
  bool in_transit =
      true;  // before the checksums are compared, or after that, in the rank's own memory
};

class FaultyChannel final : public ChannelAround {
 public:
  FaultyChannel(std::unique_ptr<Channel> inner, std::vector<RoundOfMessages> rounds,
                const Fault& fault)
      : ChannelAround(std::move(rounds), std::move(inner)), fault_(fault) {}
  bool received() override {
    if (!inner_->received()) return false;
    const auto& receives = rounds_[round_].receives;
    // Only messages of data: the checks' own are smaller.
    if (round_ != fault_.round || done_ || receives.empty() || receives[0].bytes < 4000)
      return true;
    fault_.change(const_cast<std::byte*>(inner_->where(0)));
    done_ = true;
    return true;
  }

 private:
  const Fault& fault_;
  bool done_ = false;
};

// Returns each rank's error from two runs of `spec` with checks; "" when all is well. Ranks are
// dealt to `groups` groups in a cycle.
std::vector<std::string> outcomes(int ranks, const CollectiveSpec& spec,
                                  const std::optional<Fault>& fault, int groups = 1) {
  std::vector<std::string> all(static_cast<size_t>(ranks));
  std::atomic<int> over{0};
  run_ranks(ranks, [&](Communicator& c) {
    const auto inject = [&] {
      if (fault && c.rank() == fault->rank)
        c.channels().decorate(
            [&](Communicator&, std::vector<RoundOfMessages> rounds, const OpenChannel& inner) {
              return std::make_unique<FaultyChannel>(inner(rounds), rounds, *fault);
            });
    };
    if (fault && fault->in_transit) inject();
    c.set_check();
    if (fault && !fault->in_transit) inject();
    const auto part =
        c.split(c.rank() % groups, -c.rank(), c.rank() % groups == 0 ? "even" : "odd");
    std::vector<float> x(spec.count);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i % 7) - 3 + static_cast<float>(c.rank());
    CollectiveSpec mine = spec;
    mine.output = x.data();
    Communicator& group = groups == 1 ? c : *part;
    const auto operation = group.plan(mine);
    if (fault && fault->in_transit)
      group.set_timeout(patience(0.5));  // the others wait for it in vain
    all[static_cast<size_t>(c.rank())] = message_of<CommError>("", [&] {
      for (int run = 0; run < 2; ++run) operation->run();
    });
    // Ranks read each other's memory: no rank releases it before all are done.
    ++over;
    while (over < ranks) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  return all;
}

CollectiveSpec sum_of(size_t count, const char* algorithm) {
  return {
      .name = "bucket 7", .kind = Collective::allreduce, .count = count, .algorithm = algorithm};
}

std::function<void(std::byte*)> flip_bit_of(size_t byte) {
  return [byte](std::byte* data) { data[byte] ^= std::byte{4}; };
}
std::function<void(std::byte*)> scale_by(float factor) {
  return [factor](std::byte* data) { reinterpret_cast<float*>(data)[200] *= factor; };
}

TEST(Check, PassesRoundingInEveryTypeAndWithSeveralPartsARank) {
  run_ranks(3, [](Communicator& c) {
    c.set_check();
    const auto check = [&](auto zero, Element element, bool leaves) {
      using T = decltype(zero);
      std::vector<T> in(2 * 20000), out(20000);
      for (size_t i = 0; i < in.size(); ++i)
        in[i] =
            static_cast<T>(1 + 1e-3 * static_cast<double>(
                                          (i * 7919 + static_cast<size_t>(c.rank()) * 31) % 10007));
      CollectiveSpec spec{.kind = Collective::reduce_scatter,
                          .element = element,
                          .count = out.size(),
                          .parts = balanced_parts(out.size(), 3),
                          .input = in.data(),
                          .output = out.data()};
      if (leaves) spec.leaves = {.replicas = 7, .first = {0, 3, 5, 7}, .stride = 20000};
      const auto operation = c.plan(spec);
      for (int run = 0; run < 2; ++run) operation->run();
      c.barrier();
    };
    check(float{}, Element::f32, false);
    check(double{}, Element::f64, false);
    check(float{}, Element::f32, true);
  });
}

// Checks a lent block (pairwise reads the sender's memory in place) and a copied one (ring's
// allgather rounds).
TEST(Check, AFlippedBitIsNamedWithOperationRoundRanksAndBytes) {
  EXPECT_THAT(
      outcomes(3, sum_of(300000, "pairwise"), Fault{.round = 0, .change = flip_bit_of(70000)})[1],
      MatchesRegex("rank 1/3 on .*: group 'global' .ranks 0-2.: allreduce 'bucket 7' by pairwise "
                   "number 1: round 0, message 0 from rank [02] on .* to rank 1 on .*: "
                   "bytes .65536, 131072. of 400000 are not what was sent.*"));
  EXPECT_THAT(outcomes(3, sum_of(300000, "ring"), Fault{.round = 3, .change = flip_bit_of(0)})[1],
              MatchesRegex("rank 1/3 on .*: group 'global' .ranks 0-2.: allreduce 'bucket 7' by "
                           "ring number 1: round 3, message 0 from rank 0 on .* to rank 1 on .*: "
                           "bytes .0, 65536. of 400000 are not what was sent.*"));
}

TEST(Check, PartsOfASplitCheckTooAndNameRanksOfTheJob) {
  const CollectiveSpec spec{.kind = Collective::broadcast, .count = 1000};
  const std::vector<std::string> messages = outcomes(4, spec, Fault{.change = flip_bit_of(99)}, 2);
  EXPECT_THAT(
      messages[1],
      MatchesRegex("rank 1/4 on .*: group 'odd' .ranks 1, 3.: broadcast by .* number 1: round 0, "
                   "message 0 from rank 3 on .* to rank 1 on .*: bytes .0, 4000. of 4000.*"));
  EXPECT_EQ(messages[0] + messages[2], "");
}

// The sum goes wrong in one place, and all ranks get the wrong sum.
TEST(Check, AWrongSumIsNamedByWhoAddedIt) {
  EXPECT_THAT(
      outcomes(4, sum_of(40000, "pairwise"),
               Fault{.rank = 2, .round = 0, .change = scale_by(3), .in_transit = false}),
      Each(MatchesRegex(
          "rank [0-3]/4 on .*: group 'global' .ranks 0-3.: allreduce 'bucket 7' by pairwise number "
          "1: elements .20000, 24096. of the result are not the sum of "
          "what the ranks gave: off by [0-9.]+, rounding allows [0-9.e-]+; added last on rank 2 on "
          "[^,]*: look for .*")));
}

// Each rank adds by itself, and one of them does so wrongly: it is found also when the change is
// too small for the sums.
TEST(Check, AnotherResultThanOnMostRanksIsNamed) {
  const CollectiveSpec spec = sum_of(40000, "recursive_doubling");
  Fault fault{.rank = 3, .round = 1, .change = scale_by(3), .in_transit = false};
  EXPECT_THAT(
      outcomes(4, spec, fault),
      Each(MatchesRegex(".* allreduce 'bucket 7' by recursive_doubling number 1: elements .0, "
                        "4096. of the result .* added last on rank 3 on [^,]*: look .*")));
  fault.change = scale_by(1.000001f);
  EXPECT_THAT(outcomes(4, spec, fault),
              Each(MatchesRegex(".* allreduce 'bucket 7' by recursive_doubling number 1: another "
                                "result than on most ranks on rank 3 on [^,]*: look for .*")));
}

TEST(Check, ABroadcastIsComparedToo) {
  const CollectiveSpec spec{
      .name = "weights", .kind = Collective::broadcast, .count = 5000, .algorithm = "binomial"};
  EXPECT_THAT(
      outcomes(4, spec, Fault{.rank = 3, .round = 0, .change = scale_by(3), .in_transit = false})
          .back(),
      MatchesRegex(".* broadcast 'weights' by binomial number 1: another result than on most ranks "
                   "on rank 3 on [^,]*: look for .*"));
}

}  // namespace
}  // namespace tutti::comm
