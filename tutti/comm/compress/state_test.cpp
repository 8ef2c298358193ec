#include "tutti/comm/compress/state.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tutti/base/error.h"
#include "tutti/comm/compress/codec/codec_samples.h"
#include "tutti/comm/compress/saved_sample.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

using Kind = StatePiece::Kind;

constexpr size_t kElements = 100;

// A residual of the whole gradient, the residual of a slice's sum, and a basis.
StateLayout layout_of(int rank, int ranks) {
  StateLayout layout;
  layout.add(Kind::gradient, {0, kElements}, ranks);
  layout.add(Kind::sum, balanced_parts(kElements, ranks)[static_cast<size_t>(rank)], 1);
  layout.add(Kind::basis, {0, 6}, ranks);
  return layout;
}

// The saved state of `ranks` ranks: whole numbers, so that sums are exact.
struct Saved {
  explicit Saved(int ranks) {
    for (int p = 0; p < ranks; ++p) {
      const StateLayout layout = layout_of(p, ranks);
      Floats& state = states.emplace_back(layout.floats);
      std::iota(state.begin(), state.end(), static_cast<float>(100 * p + 1));
    }
    for (int p = 0; p < ranks; ++p)
      for (const SavedPiece& piece :
           save_state(layout_of(p, ranks), p, "bucket 2", states[static_cast<size_t>(p)]))
        pieces.push_back(piece);
  }
  std::vector<Floats> states;
  std::vector<SavedPiece> pieces;
};

Floats released(const std::vector<Floats>& states) {
  Floats sum(kElements, 0.0f);
  for (size_t p = 0; p < states.size(); ++p) {
    Floats state = states[p];
    release_residuals(layout_of(static_cast<int>(p), static_cast<int>(states.size())), state, sum);
  }
  return sum;
}

// One rank that restores its state from saved pieces.
struct Restoring {
  Restoring(Communicator& c, int saved_ranks, const std::vector<SavedPiece>& pieces)
      : c(c), file(saved_ranks, pieces), layout(layout_of(c.rank(), c.size())),
        state(layout.floats, 7.0f) {}
  Restored restore(size_t elements = kElements) {
    return restore_state(c, file, layout, "bucket 2", elements, state);
  }

  Communicator& c;
  SavedSample file;
  StateLayout layout;
  Floats state;
};

TEST(CompressionState, NamesSayRankBucketKindAndPlace) {
  const StateLayout layout = layout_of(1, 2);
  EXPECT_EQ(layout.floats, kElements + layout.pieces[1].covers.count + 6);
  const auto pieces = save_state(layout, 1, "bucket 2", Floats(layout.floats));
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].name, "compression.rank1.bucket 2.gradient@0");
  EXPECT_EQ(pieces[1].name, "compression.rank1.bucket 2.sum@48");
  EXPECT_EQ(pieces[2].name, "compression.rank1.bucket 2.basis@0");
  EXPECT_EQ(pieces[1].values.size(), 52u);
}

TEST(CompressionState, TheSameRanksGetTheirOwnBack) {
  for (const int ranks : {1, 2, 5}) {
    const Saved saved(ranks);
    std::vector<SavedPiece> pieces(saved.pieces.rbegin(), saved.pieces.rend());
    const Floats other{1, 2, 3};
    pieces.push_back({"compression.rank0.bucket 21.gradient@0", other});
    pieces.push_back({"conv1.weight.momentum", other});
    run_ranks(ranks, [&](Communicator& c) {
      Restoring rank(c, ranks, pieces);
      EXPECT_EQ(rank.restore(), Restored::exact);
      EXPECT_EQ(rank.state, saved.states[static_cast<size_t>(c.rank())]);
      EXPECT_EQ(rank.file.floats_read, rank.layout.floats)
          << "a rank reads its own, however many there are";
    });
  }
}

TEST(CompressionState, OtherRanksShareTheSumOfAllResiduals) {
  for (const int before : {1, 2, 4, 5})
    for (const int after : {1, 2, 4}) {
      if (before == after) continue;
      const Saved saved(before);
      std::vector<Floats> states(static_cast<size_t>(after));
      run_ranks(after, [&](Communicator& c) {
        Restoring rank(c, before, saved.pieces);
        EXPECT_EQ(rank.restore(), Restored::dealt);
        const size_t most = static_cast<size_t>((before + after - 1) / after);
        EXPECT_LE(rank.file.floats_read,
                  most * (kElements + kElements / static_cast<size_t>(before) + 1 + 6));
        EXPECT_LE(rank.file.largest_read, kElements) << "one piece at a time";
        EXPECT_EQ(rank.state.back(), saved.states[0].back())
            << "the basis fits any number of ranks";
        states[static_cast<size_t>(c.rank())] = rank.state;
      });
      EXPECT_EQ(released(states), released(saved.states)) << before << " -> " << after;
    }
}

TEST(CompressionState, ARankThatFindsItsOwnFollowsOneThatDoesNot) {
  const Saved saved(2);
  // Rank 1's slice of sums begins elsewhere, as after another mapping of ranks to nodes.
  std::vector<SavedPiece> pieces = saved.pieces;
  ASSERT_EQ(pieces[4].name, "compression.rank1.bucket 2.sum@48");
  pieces[4].name = "compression.rank1.bucket 2.sum@32";
  run_ranks(
      2, [&](Communicator& c) { EXPECT_EQ(Restoring(c, 2, pieces).restore(), Restored::dealt); });
}

TEST(CompressionState, NothingSavedIsZeros) {
  const auto c = make_single_communicator();
  Restoring rank(*c, 1, {});
  EXPECT_EQ(rank.restore(), Restored::nothing);
  EXPECT_EQ(rank.state, Floats(rank.layout.floats, 0.0f));
}

TEST(CompressionState, ABucketOfAnotherSizeIsRefused) {
  const auto c = make_single_communicator();
  const Saved saved(1);
  EXPECT_THROW(Restoring(*c, 1, saved.pieces).restore(kElements - 1), ConfigError);
}

TEST(CompressionState, WhatOneRankCannotReadIsAnErrorOnAll) {
  for (const int before : {3, 5}) {
    const Saved saved(before);
    run_ranks(3, [&](Communicator& c) {
      Restoring rank(c, before, saved.pieces);
      rank.file.broken_rank = 1;
      EXPECT_THROW(rank.restore(), IoError);
    });
  }
}

TEST(CompressionState, ReleasedResidualsAreZeroAndTheBasisStays) {
  const Saved saved(2);
  Floats state = saved.states[1], gradient(kElements, 1000.0f);
  const StateLayout layout = layout_of(1, 2);
  release_residuals(layout, state, gradient);
  EXPECT_EQ(gradient[0], 1000 + saved.states[1][0]);
  EXPECT_EQ(gradient[48], 1000 + saved.states[1][48] + saved.states[1][kElements]);
  EXPECT_TRUE(std::all_of(state.begin(), state.end() - 6, [](float x) { return x == 0; }));
  EXPECT_EQ(Floats(state.end() - 6, state.end()),
            Floats(saved.states[1].end() - 6, saved.states[1].end()));
}

}  // namespace
}  // namespace tutti::comm
