#include "tutti/mlsl/layout/layer.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti::mlsl::layout {
namespace {

size_t u(int number) { return static_cast<size_t>(number); }

TEST(Layer, SamplesAndMaps) {
  const Distribution d(8, {.data = 2, .model = 4});
  const Activation input{.maps = 32, .map_size = 9};
  const LocalActivation local = local_share(input, 10, d, 6);
  EXPECT_EQ(local.samples, (comm::Slice{5, 5}));
  EXPECT_EQ(local.maps, (comm::Slice{16, 8}));
  EXPECT_EQ(local.elements(), 5u * 8 * 9);
  EXPECT_FALSE(local.needs_reduce);
  EXPECT_EQ(local_share(input, 10, d, 3).samples, (comm::Slice{0, 5}));
}

TEST(Layer, PartialSumsAreNotCut) {
  const Activation output{.maps = 30, .map_size = 9, .partial_sums = true};
  const LocalActivation local = local_share(output, 8, Distribution(8, {.data = 2, .model = 4}), 6);
  EXPECT_EQ(local.maps, (comm::Slice{0, 30})) << "30 maps need not be divisible by 4";
  EXPECT_TRUE(local.needs_reduce);
  const LocalActivation whole = local_share(output, 8, Distribution(8, {.data = 8, .model = 1}), 6);
  EXPECT_EQ(whole.maps, (comm::Slice{0, 30}));
  EXPECT_FALSE(whole.needs_reduce) << "one model part holds finished sums";
}

TEST(Layer, WhatCannotBeCutIsRefused) {
  const Distribution d(8, {.data = 2, .model = 4});
  EXPECT_THROW(local_samples(9, d, 0), ConfigError);
  EXPECT_THROW(local_share(Activation{.maps = 30}, 8, d, 0), ConfigError);
  EXPECT_THROW(local_share(Parameters{.kernels = 30}, d, 0), ConfigError);
  const std::vector<Colours> one_group(4);
  EXPECT_THROW(local_samples(8, Distribution(one_group), 0), ConfigError) << "no grid";
}

TEST(Layer, ParametersOfOneDataPartAreNotExchanged) {
  for (const bool distributed : {false, true}) {
    const Parameters parameters{.kernels = 12, .kernel_size = 9, .distributed_update = distributed};
    const LocalParameters p = local_share(parameters, Distribution(4, {.data = 1, .model = 4}), 2);
    EXPECT_EQ(p.local, (comm::Slice{6, 3}));
    EXPECT_EQ(p.owned, (comm::Slice{0, 3}));
    EXPECT_EQ(p.padded, 3u);
    EXPECT_FALSE(p.gradient);
    EXPECT_FALSE(p.increment);
  }
}

TEST(Layer, PlainUpdate) {
  const LocalParameters p = local_share(Parameters{.kernels = 20, .kernel_size = 9},
                                        Distribution(8, {.data = 4, .model = 2}), 5);
  EXPECT_EQ(p.local, (comm::Slice{10, 10}));
  EXPECT_EQ(p.owned, (comm::Slice{0, 10}));
  EXPECT_EQ(p.padded, 10u);
  EXPECT_EQ(p.gradient, (GroupCollective{comm::Collective::allreduce, 90}));
  EXPECT_FALSE(p.increment);
}

TEST(Layer, DistributedUpdatePadsTheLastShares) {
  // 10 kernels on 4 ranks: 3 each, 12 with padding; the last rank owns kernel 9 and two that do not
  // exist.
  const Distribution d(8, {.data = 4, .model = 2});
  for (int data = 0; data < 4; ++data) {
    const LocalParameters p = local_share(
        Parameters{.kernels = 20, .kernel_size = 9, .distributed_update = true}, d, 2 * data + 1);
    EXPECT_EQ(p.local, (comm::Slice{10, 10}));
    EXPECT_EQ(p.owned, (comm::Slice{3 * u(data), 3}));
    EXPECT_EQ(p.padded, 12u);
    EXPECT_EQ(p.gradient, (GroupCollective{comm::Collective::reduce_scatter, 27}));
    EXPECT_EQ(p.increment, (GroupCollective{comm::Collective::allgather, 27}));
  }
  // There are fewer kernels than ranks: the last rank owns only padding.
  const LocalParameters few = local_share(Parameters{.kernels = 3, .distributed_update = true},
                                          Distribution(4, {.data = 4, .model = 1}), 3);
  EXPECT_EQ(few.owned, (comm::Slice{3, 1}));
  EXPECT_EQ(few.padded, 4u);
}

// Every rank's gradient is g[i] = i; the owner must get data parts * i. After owners have written
// p[i] = i and spread it, every rank must have p[i] = i. With 4 ranks: the parameters of the
// acceptance test's two layers, and some that need padding.
void update_once(Distribution d, Parameters parameters) {
  std::vector<LocalParameters> own;
  for (int rank = 0; rank < d.world(); ++rank) own.push_back(local_share(parameters, d, rank));
  const size_t k = parameters.kernel_size;
  std::vector<std::vector<size_t>> memory;
  for (int rank = 0; rank < d.world(); ++rank) {
    const LocalParameters& mine = own[u(rank)];
    const auto data_parts = u(d.parts(GroupKind::data));
    ASSERT_EQ(mine.gradient.has_value(), data_parts > 1);
    ASSERT_EQ(mine.increment.has_value(), data_parts > 1 && parameters.distributed_update);
    ASSERT_LE(mine.local.count, mine.padded);
    ASSERT_LT(mine.padded - mine.local.count, data_parts) << "no more padding than needed";

    // Reduces element by element.
    const bool scattered = mine.gradient && mine.gradient->kind == comm::Collective::reduce_scatter;
    const size_t count = mine.gradient ? mine.gradient->count : mine.padded * k;
    ASSERT_EQ(count, mine.owned.count * k);
    const size_t first = scattered ? u(d.index(GroupKind::data, rank)) * count : 0;
    memory.emplace_back(mine.padded * k, 0);
    for (size_t j = 0; j < count; ++j) {
      size_t sum = 0;
      for (int peer : d.group(GroupKind::data, rank)) {
        ASSERT_EQ(own[u(peer)].padded, mine.padded);
        ASSERT_EQ(own[u(peer)].local, mine.local) << "a data group shares its kernels";
        sum += first + j;  // the peer's g[first + j]
      }
      ASSERT_EQ(sum, data_parts * (mine.owned.begin * k + j));
      memory.back().at(mine.owned.begin * k + j) = mine.owned.begin * k + j;
    }
  }
  for (int rank = 0; rank < d.world(); ++rank) {
    const LocalParameters& mine = own[u(rank)];
    std::vector<size_t> p = memory[u(rank)];
    if (mine.increment) {
      const std::vector<int>& group = d.group(GroupKind::data, rank);
      const size_t count = mine.increment->count;
      for (size_t q = 0; q < group.size(); ++q)
        for (size_t i = q * count; i < (q + 1) * count; ++i) p.at(i) = memory[u(group[q])].at(i);
    }
    for (size_t i = 0; i < mine.local.count * k; ++i)
      ASSERT_EQ(p[i], i) << "rank " << rank << " of " << d.to_string();
  }
}

TEST(Layer, UpdatesOfTheAcceptanceTest) {
  for (const int model : {1, 2, 4})
    for (const bool distributed : {false, true})
      for (const size_t local :
           std::vector<size_t>{128 * 256 / u(model), 256 * 256 / u(model), 7, 5, 1}) {
        update_once(
            Distribution(4, {.data = 4 / model, .model = model}),
            {.kernels = local * u(model), .kernel_size = 9, .distributed_update = distributed});
      }
}

}  // namespace
}  // namespace tutti::mlsl::layout
