#include <fmt/format.h>

#include "tests/multirank/matrix_cases.h"
#include "tutti/base/numeric/rng.h"

namespace tutti {
namespace {

constexpr int kFlights = 12;
constexpr int kRounds = 4;

// Picks operations from the product, with chunks and priorities. The same on every rank.
std::vector<Collected> picked(MatrixAxes axes, size_t operations, uint64_t seed) {
  axes.counts = {1, 127, 5003};
  const std::vector<Collected> all = product_of(axes);
  Rng rng(5, Purpose::test, seed);
  std::vector<Collected> some;
  for (size_t k = 0; k < operations; ++k) {
    Collected what = all[rng.below(static_cast<uint32_t>(all.size()))];
    what.chunk = rng.below(2) == 0 ? 0 : 16 + rng.below(1000);
    what.priority = static_cast<int>(rng.below(4));
    some.push_back(what);
  }
  return some;
}

// Starts in one order and waits in another; both differ between ranks.
size_t fly(comm::Communicator& c, const std::vector<Collected>& operations) {
  std::vector<std::unique_ptr<Trial>> trials;
  for (const Collected& what : operations) trials.push_back(std::make_unique<Trial>(c, what));
  size_t wrong = 0;
  const size_t n = trials.size();
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t k = 0; k < n; ++k) trials[k]->fill(round * n + k);
    for (size_t k = 0; k < n; ++k) {
      trials[(k + static_cast<size_t>(c.rank()) + round) % n]->operation().start();
      c.progress();
    }
    for (size_t k = n; k-- > 0;)
      trials[(k + 3 * static_cast<size_t>(c.rank())) % n]->operation().wait();
    for (const auto& trial : trials) wrong += trial->wrong();
  }
  return wrong;
}

size_t run_flight(comm::Communicator& c, const MatrixAxes& axes, uint64_t seed) {
  return fly(c, picked(axes, 8, seed));
}

// Groups work while an operation of the whole is in flight; it moves when its communicator waits.
size_t run_groups(comm::Communicator& c, const MatrixAxes& axes, int groups, bool reverse) {
  const std::unique_ptr<comm::Communicator> part =
      c.split(c.rank() % groups, reverse ? -c.rank() : c.rank());
  MatrixAxes own = axes;
  own.ranks = part->size(), own.node_of = part->node_of();
  Trial whole(
      c,
      {.kind = comm::Collective::allreduce, .algorithm = "pairwise", .count = 5003, .chunk = 1000});
  whole.fill(1);
  whole.operation().start();
  const size_t wrong =
      fly(*part, picked(own, 6, static_cast<uint64_t>(100 * groups + c.rank() % groups)));
  whole.operation().wait();
  return wrong + whole.wrong();
}

// The lower half splits, plans, allocates and works while the others wait for a message from rank 0
// that it is done: if any of that needed the others, no rank would continue.
size_t run_half(comm::Communicator& c, const MatrixAxes& axes) {
  const int half = std::max(1, c.size() / 2);
  const auto part = c.split(c.rank() < half ? 0 : 1, c.rank());
  size_t wrong = 0;
  if (c.rank() < half) {
    const auto smaller = part->split(0, -part->rank());
    MatrixAxes own = axes;
    own.ranks = smaller->size(), own.node_of = smaller->node_of();
    const auto window = smaller->allocate(4096);
    wrong = fly(*smaller, picked(own, 6, 77));
    smaller->barrier();
  }
  const auto word = [&](int peer) { return comm::MessageSpec{.name = "word", .peer = peer}; };
  for (int p = half; p < c.size() && c.rank() == 0; ++p) c.plan_send(word(p))->run();
  if (c.rank() >= half) c.plan_receive(word(0))->run();
  return wrong;
}

// Uses so many chunks that a rank's credit for short messages over TCP is used up: further ones are
// announced, and granted together. Once none of the grants for the last 384 of 20,000 was obeyed,
// because the grants ended where a read of them did.
size_t run_chunks(comm::Communicator& c, size_t chunks) {
  return run_trial(c,
                   {.kind = comm::Collective::allreduce,
                    .algorithm = "pairwise",
                    .element = comm::Element::i64,
                    .count = 2 * chunks,
                    .chunk = 2},
                   2);
}

}  // namespace

std::vector<MatrixCase> flight_cases(const MatrixAxes& axes) {
  std::vector<MatrixCase> all;
  for (uint64_t seed = 0; seed < kFlights; ++seed)
    all.push_back({fmt::format("eight in flight, choice {}", seed),
                   [axes, seed](comm::Communicator& c) { return run_flight(c, axes, seed); }});
  if (axes.ranks > 1)
    all.push_back({"half of the ranks plans alone",
                   [axes](comm::Communicator& c) { return run_half(c, axes); }});
  if (axes.ranks > 2)
    all.push_back(
        {"twenty thousand chunks", [](comm::Communicator& c) { return run_chunks(c, 20000); }});
  for (int groups = 1; groups <= axes.ranks; ++groups)
    for (const bool reverse : {false, true})
      all.push_back(
          {fmt::format("{} group(s){} beside the whole", groups, reverse ? " in reverse" : ""),
           [axes, groups, reverse](comm::Communicator& c) {
             return run_groups(c, axes, groups, reverse);
           }});
  return all;
}

}  // namespace tutti
