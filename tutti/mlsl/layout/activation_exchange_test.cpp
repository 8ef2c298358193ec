#include "tutti/mlsl/layout/activation_exchange.h"

#include <gtest/gtest.h>

#include <functional>

#include "tutti/base/error.h"

namespace tutti::mlsl::layout {
namespace {

using Values = std::vector<int64_t>;  // a local activation, or a buffer
using ElementOf = std::function<int64_t(
    size_t sample, size_t element)>;  // element: map * map_size + s, over all maps
constexpr int64_t kUnset = -1'000'000'007;

std::span<const std::byte> bytes(const Values& values) { return std::as_bytes(std::span(values)); }
std::span<std::byte> bytes(Values& values) { return std::as_writable_bytes(std::span(values)); }

Values fill(const LocalActivation& local, const ElementOf& value) {
  Values values;
  for (size_t s = 0; s < local.samples.count; ++s)
    for (size_t e = 0; e < local.maps.count * local.map_size; ++e)
      values.push_back(value(local.samples.begin + s, local.maps.begin * local.map_size + e));
  return values;
}

// Two connected layers, on all ranks of a world.
struct Connection {
  Distribution out, in;
  Activation from, to;
  size_t minibatch;

  LocalActivation output(int rank) const { return local_share(from, minibatch, out, rank); }
  LocalActivation input(int rank) const { return local_share(to, minibatch, in, rank); }
  ActivationExchange exchange(int rank) const {
    return derive_exchange({out, from}, {in, to}, minibatch, rank);
  }
};

// Runs one direction on all ranks: packs, runs the collective over the buffers element by element,
// unpacks.
std::vector<Values> run(const std::vector<ActivationExchange>& all,
                        std::optional<ActivationTransfer> ActivationExchange::*direction,
                        const std::vector<Values>& local,
                        const std::function<size_t(int)>& result_size) {
  std::vector<Values> packed;
  for (size_t r = 0; r < all.size(); ++r) {
    packed.emplace_back(all[r].buffer, kUnset);
    const std::vector<CommBlock>& blocks = (all[r].*direction)->pack;
    for (const CommBlock& block : blocks)
      EXPECT_LE(block.buffer_offset + block.elements(), all[r].buffer);
    pack(blocks, sizeof(int64_t), bytes(local[r]).data(), bytes(packed[r]).data());
  }
  std::vector<Values> results;
  for (size_t r = 0; r < all.size(); ++r) {
    const auto [kind, count] = (all[r].*direction)->collective;
    const size_t n = all[r].group.size();
    const size_t index = size_t(all[r].index);
    EXPECT_EQ(all[r].group.at(index), static_cast<int>(r));
    Values received(all[r].buffer, kUnset);
    const auto sent = [&](size_t member, size_t at) {
      return packed[size_t(all[r].group[member])].at(at);
    };
    const bool sums =
        kind == comm::Collective::allreduce || kind == comm::Collective::reduce_scatter;
    for (size_t j = 0; sums && j < count; ++j) {
      received.at(j) = 0;
      for (size_t q = 0; q < n; ++q)
        received[j] += sent(q, kind == comm::Collective::allreduce ? j : index * count + j);
    }
    for (size_t q = 0; !sums && q < n; ++q)
      for (size_t j = 0; j < count; ++j)
        received.at(q * count + j) =
            sent(q, (kind == comm::Collective::allgather ? q : index) * count + j);
    results.emplace_back(result_size(static_cast<int>(r)), kUnset);
    unpack((all[r].*direction)->unpack, sizeof(int64_t), bytes(received).data(),
           bytes(results[r]).data());
  }
  return results;
}

// Gives every replica of the output values of its own, so that an exchange between replicas would
// show.
ElementOf shifted(const ElementOf& value, int replica) {
  return [=](size_t sample, size_t element) {
    return value(sample, element) + int64_t{1'000'000'000} * replica;
  };
}

// Returns the share of a sum on model part `index` of `parts`, with noise that cancels out.
ElementOf partial(const ElementOf& sum, int index, int parts) {
  const auto noise = [](int part, size_t sample, size_t element) {
    return static_cast<int64_t>((sample * 31 + element * 7 + 3) * size_t(part));
  };
  return [=](size_t sample, size_t element) {
    if (index > 0) return noise(index, sample, element);
    int64_t rest = sum(sample, element);
    for (int part = 1; part < parts; ++part) rest -= noise(part, sample, element);
    return rest;
  };
}

// Runs forward and backward on all ranks; every rank must get exactly its share.
void expect_exchange(const Connection& c, ExchangeCase kind) {
  SCOPED_TRACE(c.out.to_string() + " -> " + c.in.to_string());
  const int world = c.out.world();
  const ElementOf value = [](size_t sample, size_t element) {
    return static_cast<int64_t>(sample * 10'000 + element);
  };
  const ElementOf gradient = [](size_t sample, size_t element) {
    return static_cast<int64_t>(sample * 77'777 + element * 3 + 1);
  };
  std::vector<ActivationExchange> all;
  std::vector<Values> outputs, inputs, input_gradients, output_gradients;
  for (int rank = 0; rank < world; ++rank) {
    all.push_back(c.exchange(rank));
    ASSERT_EQ(all.back().kind, kind);
    const ElementOf mine = shifted(value, c.out.replica(rank));
    const LocalActivation output = c.output(rank);
    const ElementOf held = output.needs_reduce ? partial(mine, c.out.index(GroupKind::model, rank),
                                                         c.out.parts(GroupKind::model))
                                               : mine;
    outputs.push_back(fill(output, held));
    inputs.push_back(fill(c.input(rank), mine));
    input_gradients.push_back(fill(c.input(rank), shifted(gradient, c.out.replica(rank))));
    output_gradients.push_back(fill(output, shifted(gradient, c.out.replica(rank))));
  }
  const bool forward = kind != ExchangeCase::none;
  const bool backward = forward && kind != ExchangeCase::sum_to_all;
  for (const ActivationExchange& exchange : all) {
    ASSERT_EQ(exchange.forward.has_value(), forward);
    ASSERT_EQ(exchange.backward.has_value(), backward);
  }
  const auto input_size = [&](int rank) { return c.input(rank).elements(); };
  const auto output_size = [&](int rank) { return c.output(rank).elements(); };
  EXPECT_EQ(forward ? run(all, &ActivationExchange::forward, outputs, input_size) : outputs,
            inputs);
  EXPECT_EQ(backward ? run(all, &ActivationExchange::backward, input_gradients, output_size)
                     : input_gradients,
            output_gradients);
}

// Repeats the header's table in numbers, for distributions by parts. {} if there is no exchange.
std::optional<ExchangeCase> expected_case(Parts out, Parts in, bool partial_sums) {
  const bool needs_reduce = partial_sums && out.model > 1;
  if (out.data == in.data && out.model == in.model)
    return needs_reduce ? ExchangeCase::sum_to_maps : ExchangeCase::none;
  if (needs_reduce && out.data == 1 && in.data == 1 && in.model == 1)
    return ExchangeCase::sum_to_all;
  if (in.model == 1 && in.data == out.data * out.model)
    return needs_reduce ? ExchangeCase::sum_to_samples : ExchangeCase::to_samples;
  if (!needs_reduce && out.model == 1 && out.data == in.data * in.model)
    return ExchangeCase::to_maps;
  return {};
}

TEST(ActivationExchange, EveryPairOfDistributions) {
  int cases[6] = {};
  for (const int world : {1, 2, 4, 8}) {
    std::vector<Parts> all_parts;
    for (int data = 1; data <= world; data *= 2)
      for (int model = 1; data * model <= world; model *= 2) all_parts.push_back({data, model});
    for (const Parts out : all_parts)
      for (const Parts in : all_parts)
        for (const bool partial_sums : {false, true}) {
          const Activation from{.maps = 16, .map_size = 6, .partial_sums = partial_sums},
              to{.maps = 16, .map_size = 6};
          const Connection c{Distribution(world, out), Distribution(world, in), from, to, 24};
          if (const auto kind = expected_case(out, in, partial_sums)) {
            ++cases[static_cast<int>(*kind)];
            expect_exchange(c, *kind);
            Connection flat =
                c;  // a dense layer behind a convolution: the maps' elements become maps
            flat.to = {.maps = 96, .map_size = 1};
            expect_exchange(flat, *kind);
          } else {
            EXPECT_THROW(c.exchange(0), CommError)
                << c.out.to_string() << " -> " << c.in.to_string();
            EXPECT_THROW(c.exchange(world - 1), CommError);
          }
        }
  }
  for (const int found : cases) EXPECT_GT(found, 2) << "every case is there";
}

TEST(ActivationExchange, SumsToAllWithDataParts) {
  // The input's data groups are at a stride of the output's model parts: every rank keeps its
  // samples.
  for (const int model : {2, 4}) {
    std::vector<Colours> colours;
    for (int rank = 0; rank < 8; ++rank) colours.push_back({.data = rank % model, .model = rank});
    const Activation from{.maps = 15, .map_size = 2, .partial_sums = true},
        to{.maps = 5, .map_size = 6};
    const Connection c{Distribution(8, {.data = 8 / model, .model = model}), Distribution(colours),
                       from, to, 16};
    expect_exchange(c, ExchangeCase::sum_to_all);
    EXPECT_EQ(c.exchange(3).group, c.out.group(GroupKind::model, 3));
  }
}

TEST(ActivationExchange, RefusalNamesBothDistributions) {
  const Distribution out(4, {.data = 2, .model = 2}), in(4, {.data = 2, .model = 1});
  const Connection c{out, in, {.maps = 4, .partial_sums = true}, {.maps = 4}, 8};
  try {
    c.exchange(0);
    FAIL() << "rank 1 would get the samples of rank 0 and need those of ranks 2 and 3";
  } catch (const CommError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("2 data x 2 model parts of 4 ranks (partial sums)"), std::string::npos)
        << text;
    EXPECT_NE(text.find("2 data x 1 model parts of 4 ranks"), std::string::npos) << text;
  }
  const Connection worlds{Distribution(4, {.data = 4, .model = 1}),
                          Distribution(2, {.data = 2, .model = 1}),
                          {.maps = 4},
                          {.maps = 4},
                          8};
  EXPECT_THROW(worlds.exchange(3), CommError);
}

TEST(ActivationExchange, TheSamplesMustBeWhereThePartsSay) {
  // Model groups at a stride: ranks 0 and 2 share samples 0-3, but rank 2 would need samples 4-5 as
  // its own.
  const std::vector<Colours> colours{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  for (const bool partial_sums : {false, true}) {
    Connection c{Distribution(colours),
                 Distribution(4, {.data = 4, .model = 1}),
                 {.maps = 4, .partial_sums = partial_sums},
                 {.maps = 4},
                 8};
    EXPECT_THROW(c.exchange(0), CommError);
    std::swap(c.in, c.out);
    EXPECT_THROW(c.exchange(0), CommError);
  }
}

TEST(ActivationExchange, SizesThatDoNotFitAreRefused) {
  const Distribution cut(4, {.data = 2, .model = 2}), whole(4, {.data = 4, .model = 1});
  const auto derive = [](const Distribution& out, Activation from, const Distribution& in,
                         Activation to, size_t minibatch) {
    derive_exchange({out, from}, {in, to}, minibatch, 0);
  };
  EXPECT_THROW(derive(cut, {.maps = 4, .map_size = 3}, cut, {.maps = 6, .map_size = 3}, 8),
               ConfigError);
  EXPECT_THROW(derive(whole, {.maps = 4}, cut, {.maps = 4}, 6), ConfigError)
      << "6 samples of 4 data parts";
  EXPECT_THROW(derive(cut, {.maps = 5, .partial_sums = true}, cut, {.maps = 5}, 8), ConfigError)
      << "the input of 5 maps has 2 model parts";
  EXPECT_THROW(derive(cut, {.maps = 5, .map_size = 2, .partial_sums = true}, cut, {.maps = 10}, 8),
               ConfigError)
      << "nor can the output be cut";
  EXPECT_NO_THROW(derive(cut, {.maps = 5, .partial_sums = true}, whole, {.maps = 5}, 8))
      << "cut by samples";
}

TEST(ActivationExchange, BlocksOfEachCase) {
  // Rank 3 of 4, 8 samples, 4 maps of 5 elements.
  const Distribution cut(4, {.data = 2, .model = 2}), whole(4, {.data = 4, .model = 1});
  const Activation maps{.maps = 4, .map_size = 5},
      sums{.maps = 4, .map_size = 5, .partial_sums = true};
  using Blocks = std::vector<CommBlock>;

  const ActivationExchange to_maps = derive_exchange({cut, sums}, {cut, maps}, 8, 3);
  EXPECT_EQ(to_maps.group, (std::vector<int>{2, 3}));
  EXPECT_EQ(to_maps.buffer, 80u);
  EXPECT_EQ(to_maps.forward->collective, (GroupCollective{comm::Collective::reduce_scatter, 40}));
  EXPECT_EQ(to_maps.forward->pack,
            (Blocks{{{0, 4}, {0, 2}, 5, 20, 0}, {{0, 4}, {2, 2}, 5, 20, 40}}));
  EXPECT_EQ(to_maps.forward->unpack, (Blocks{{{0, 4}, {0, 2}, 5, 10, 0}}));
  EXPECT_EQ(to_maps.backward->collective, (GroupCollective{comm::Collective::allgather, 40}));
  EXPECT_EQ(to_maps.backward->pack, (Blocks{{{0, 4}, {0, 2}, 5, 10, 40}}))
      << "in place, at model index * count";
  EXPECT_EQ(to_maps.backward->unpack, to_maps.forward->pack);

  const ActivationExchange to_samples = derive_exchange({cut, sums}, {whole, maps}, 8, 3);
  EXPECT_EQ(to_samples.forward->collective,
            (GroupCollective{comm::Collective::reduce_scatter, 40}));
  EXPECT_EQ(to_samples.forward->pack,
            (Blocks{{{0, 2}, {0, 4}, 5, 20, 0}, {{2, 2}, {0, 4}, 5, 20, 40}}));
  EXPECT_EQ(to_samples.forward->unpack, (Blocks{{{0, 2}, {0, 4}, 5, 20, 0}}));
  EXPECT_EQ(to_samples.backward->pack, (Blocks{{{0, 2}, {0, 4}, 5, 20, 40}}));

  const ActivationExchange tiles = derive_exchange({whole, maps}, {cut, maps}, 8, 3);
  EXPECT_TRUE(tiles.consumers_group);
  EXPECT_EQ(tiles.buffer, 40u);
  EXPECT_EQ(tiles.forward->collective, (GroupCollective{comm::Collective::all_to_all, 20}));
  EXPECT_EQ(tiles.forward->pack, (Blocks{{{0, 2}, {0, 2}, 5, 20, 0}, {{0, 2}, {2, 2}, 5, 20, 20}}));
  EXPECT_EQ(tiles.forward->unpack,
            (Blocks{{{0, 2}, {0, 2}, 5, 10, 0}, {{2, 2}, {0, 2}, 5, 10, 20}}));
  EXPECT_EQ(tiles.backward->pack, tiles.forward->unpack);
  EXPECT_EQ(tiles.backward->unpack, tiles.forward->pack);

  const ActivationExchange back = derive_exchange({cut, maps}, {whole, maps}, 8, 3);
  EXPECT_FALSE(back.consumers_group);
  EXPECT_EQ(back.group, (std::vector<int>{2, 3}));
  EXPECT_EQ(back.forward->pack, tiles.backward->pack);
  EXPECT_EQ(back.forward->unpack, tiles.backward->unpack);
}

TEST(ActivationExchange, AcceptanceTest) {
  // Minibatch 16, 4 ranks, layer 0 of 128 -> 256 maps and layer 1 of 256 -> 256, 12 x 12, both
  // convolutions. With M model parts the output out[i] = i must arrive as M * i, and the gradient
  // that holds i must come back unchanged.
  constexpr size_t kMapSize = 12 * 12;
  for (const int m : {1, 2, 4}) {
    const Distribution d(4, {.data = 4 / m, .model = m});
    const Connection c{d,
                       d,
                       {.maps = 256, .map_size = kMapSize, .partial_sums = true},
                       {.maps = 256, .map_size = kMapSize},
                       16};
    std::vector<ActivationExchange> all;
    std::vector<Values> outputs, inputs, input_gradients, output_gradients;
    for (int rank = 0; rank < 4; ++rank) {
      all.push_back(c.exchange(rank));
      const LocalActivation in = c.input(rank);
      const Activation first_input{.maps = 128, .map_size = kMapSize};
      EXPECT_EQ(local_share(first_input, 16, d, rank).maps,
                (comm::Slice{size_t(rank % m) * 128 / size_t(m), 128 / size_t(m)}));
      EXPECT_EQ(in.samples, (comm::Slice{size_t(rank / m) * 4 * size_t(m), 4 * size_t(m)}));
      EXPECT_EQ(in.maps, (comm::Slice{size_t(rank % m) * 256 / size_t(m), 256 / size_t(m)}));
      EXPECT_EQ(c.output(rank).maps, (comm::Slice{0, 256}));
      Values whole(c.output(rank).elements());
      for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<int64_t>(i);
      Values mine;
      for (size_t mb = 0; mb < in.samples.count; ++mb)
        for (size_t fm = 0; fm < in.maps.count; ++fm)
          for (size_t e = 0; e < kMapSize; ++e)
            mine.push_back(static_cast<int64_t>(mb * in.maps.count * kMapSize * size_t(m) +
                                                (in.maps.begin + fm) * kMapSize + e));
      outputs.push_back(whole);
      output_gradients.push_back(whole);
      input_gradients.push_back(mine);
      for (int64_t& value : mine) value *= m;
      inputs.push_back(mine);
      ASSERT_EQ(all.back().kind, m == 1 ? ExchangeCase::none : ExchangeCase::sum_to_maps);
      if (m > 1) {
        EXPECT_EQ(all.back().forward->collective,
                  (GroupCollective{comm::Collective::reduce_scatter, 147'456}));
      }
    }
    if (m == 1) {
      EXPECT_EQ(outputs, inputs);
      EXPECT_EQ(input_gradients, output_gradients);
    } else {
      const auto input_size = [&](int rank) { return c.input(rank).elements(); };
      const auto output_size = [&](int rank) { return c.output(rank).elements(); };
      EXPECT_TRUE(run(all, &ActivationExchange::forward, outputs, input_size) == inputs)
          << m << " model parts";  // too long to print
      EXPECT_TRUE(run(all, &ActivationExchange::backward, input_gradients, output_size) ==
                  output_gradients)
          << m << " model parts";
    }
  }
}

}  // namespace
}  // namespace tutti::mlsl::layout
