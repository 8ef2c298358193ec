#include <gtest/gtest.h>

#include "tutti/mlsl/thread_environments.h"

namespace tutti::mlsl {
namespace {

const Variables kNoHeap = {{"MLSL_HEAP_SIZE_GB", "0"}};
const Variables kCounting = {{"MLSL_HEAP_SIZE_GB", "0"}, {"MLSL_STATS", "1"}};

struct Layer {
  api::OpType type;
  size_t data_parts, model_parts;
};
constexpr size_t kMaps = 8;
constexpr size_t kMapSize = 3;
constexpr size_t kMinibatch = 8;

// Builds a chain of layers: each has one input and one output of kMaps maps, unless its type has
// none.
Session& build(Environment& environment, const std::vector<Layer>& layers) {
  Session& session = environment.create_session(api::PT_TRAIN);
  session.set_minibatch(kMinibatch);
  for (const Layer& layer : layers) {
    OperationRegInfo& description = session.create_description(layer.type);
    if (layer.type != api::OT_DATA) description.add_input({kMaps, kMapSize, api::DT_FLOAT});
    if (layer.type != api::OT_EVAL)
      description.add_output({kMaps / 2, 2 * kMapSize, api::DT_FLOAT});
    const size_t index = session.add(
        description, shared(&environment.create_distribution(layer.data_parts, layer.model_parts)));
    session.remove_description(&description);
    if (index > 0) session.operation(index).set_previous(&session.operation(index - 1), 0, 0);
  }
  session.commit();
  return session;
}

float element_value(size_t sample, size_t element) {
  return static_cast<float>(1 + sample * 100 + element);
}

// Returns the values of `activation` of `operation`: [local sample][local map][map element].
Floats local_values(const Operation& operation, const Activation& activation, float factor) {
  Floats all;
  const size_t per_sample = activation.local_maps().count * activation.info().map_size;
  const size_t first = activation.local_maps().begin * activation.info().map_size;
  for (size_t s = 0; s < operation.samples().count; ++s)
    for (size_t e = 0; e < per_sample; ++e)
      all.push_back(factor * element_value(operation.samples().begin + s, first + e));
  return all;
}

template <class Blocks>
std::vector<layout::CommBlock> plain(const Blocks& blocks) {
  std::vector<layout::CommBlock> all;
  for (const CommBlockInfo& info : blocks) all.push_back(info.block());
  return all;
}

// Sends `values` of `from`, and returns what `to` receives.
Floats send(Activation& from, const Floats& values, Activation& to, size_t elements,
            bool own_buffer) {
  Floats packed(from.buffer_bytes() / sizeof(float));
  float* const buffer = own_buffer ? packed.data() : static_cast<float*>(from.buffer());
  layout::pack(plain(from.pack_blocks()), sizeof(float), std::as_bytes(std::span(values)).data(),
               reinterpret_cast<std::byte*>(buffer));
  from.start(buffer);
  const auto* const received = static_cast<const std::byte*>(to.wait());
  std::ranges::fill(packed, -2.f);  // this buffer is not read any more
  Floats got(elements, -1);
  if (received != nullptr)
    layout::unpack(plain(to.unpack_blocks()), sizeof(float), received,
                   std::as_writable_bytes(std::span(got)).data());
  return got;
}

TEST(MlslNetwork, ActivationsArriveWhateverTheDistributions) {
  const std::vector<std::vector<Layer>> chains = {
      {{api::OT_CC, 1, 4}, {api::OT_CC, 1, 4}},  // sums to maps
      {{api::OT_CC, 2, 2}, {api::OT_CC, 2, 2}},
      {{api::OT_CC, 1, 4},
       {api::OT_ACT, 4, 1},
       {api::OT_ACT, 2, 2},
       {api::OT_EVAL, 4, 1}},  // to samples, to maps, to samples
      {{api::OT_DATA, 4, 1}, {api::OT_CC, 1, 4}, {api::OT_BIAS, 1, 4}},
  };
  for (const auto& layers : chains)
    run_environments(4, kNoHeap, [&](Environment& environment, int) {
      Session& session = build(environment, layers);
      for (int round = 0; round < 4; ++round)
        for (size_t l = 0; l + 1 < layers.size(); ++l) {
          Operation& from = session.operation(l);
          Operation& to = session.operation(l + 1);
          Activation& out = from.output(0);
          Activation& in = to.input(0);
          if (out.buffer() == nullptr) {
            EXPECT_TRUE(layers[l].type != api::OT_CC && out.wait() == nullptr &&
                        out.pack_blocks().empty());
            continue;
          }
          const Floats expected = local_values(to, in, 1);
          // Each rank holds a partial sum: a quarter, or half, of the value.
          const bool partial = layers[l].type == api::OT_CC && layers[l].model_parts > 1;
          const float factor = partial ? 1 / static_cast<float>(layers[l].model_parts) : 1;
          EXPECT_EQ(send(out, local_values(from, out, factor), in, expected.size(), round % 2 == 1),
                    expected);
          // Sends the gradient of the input back to its producer.
          const Floats gradient = local_values(from, out, 1);
          EXPECT_EQ(send(in, expected, out, gradient.size(), round % 2 == 1), gradient);
        }
    });
}

struct Update {
  size_t data_parts, model_parts;
  bool distributed;
};

// 13 kernels cannot be cut into equal parts: some are padding.
TEST(MlslNetwork, GradientsAndIncrements) {
  for (const Update& update : {Update{4, 1, false},
                               {4, 1, true},
                               {2, 2, false},
                               {2, 2, true},
                               {1, 4, false},
                               {1, 4, true}})
    run_environments(4, kNoHeap, [&](Environment& environment, int rank) {
      Session& session = environment.create_session(api::PT_TRAIN);
      session.set_minibatch(kMinibatch);
      OperationRegInfo& description = session.create_description(api::OT_CC);
      description.add_input({8, 1, api::DT_FLOAT});
      description.add_output({8, 1, api::DT_FLOAT});
      description.add_parameters(
          {{13 * update.model_parts, 3, update.distributed}, api::DT_FLOAT, api::CT_NONE});
      session.add(description,
                  shared(&environment.create_distribution(update.data_parts, update.model_parts)));
      session.commit();
      ParameterSet& set = session.operation(0).parameters(0);
      EXPECT_EQ(set.wait_increment(), nullptr);
      EXPECT_EQ(set.wait_gradient(), nullptr);
      const auto owned = set.share().owned;
      EXPECT_EQ(owned.count,
                update.distributed ? (13 + update.data_parts - 1) / update.data_parts : 13);
      std::vector<Floats> kept;
      for (int round = 0; round < 5; ++round) {
        if (round == rank)
          kept.emplace_back(1000);  // buffers move on one rank, and not on the others
        Floats gradient(set.local_kernels() * 3);
        for (size_t i = 0; i < gradient.size(); ++i)
          gradient[i] = static_cast<float>(i + static_cast<size_t>(round));
        set.start_gradient(gradient.data());
        bool complete = false;
        const float* sum = nullptr;
        while (!complete) sum = static_cast<const float*>(set.test_gradient(complete));
        EXPECT_EQ(set.wait_gradient(), sum);
        if (update.data_parts == 1) {
          EXPECT_EQ(sum, nullptr);
          continue;
        }
        for (size_t i = 0; i < owned.count * 3; ++i)
          ASSERT_EQ(sum[i],
                    static_cast<float>(update.data_parts) *
                        static_cast<float>(owned.begin * 3 + i + static_cast<size_t>(round)));
        EXPECT_EQ(sum == gradient.data(), !update.distributed);
        Floats weights(set.local_kernels() * 3, -1);
        for (size_t i = 0; i < owned.count * 3; ++i)
          weights[owned.begin * 3 + i] = static_cast<float>(owned.begin * 3 + i);
        set.start_increment(weights.data());
        EXPECT_EQ(set.wait_increment(), update.distributed ? weights.data() : nullptr);
        for (size_t i = 0; update.distributed && i < weights.size(); ++i)
          ASSERT_EQ(weights[i], static_cast<float>(i));
      }
    });
}

enum class Leave { removes_operations, deletes_session, finalizes };

// The program may read its buffer after the object that used it is gone.
TEST(MlslNetwork, WhatIsInFlightIsCompleteWhenItsSessionGoes) {
  for (const Leave leave : {Leave::removes_operations, Leave::deletes_session, Leave::finalizes}) {
    std::vector<Floats> gradients(3, Floats(100'000, 1));
    run_environments(3, kNoHeap, [&](Environment& environment, int rank) {
      Session& session = environment.create_session(api::PT_TRAIN);
      session.set_minibatch(3);
      OperationRegInfo& description = session.create_description(api::OT_CC);
      description.add_parameters({{100'000, 1, false}, api::DT_FLOAT, api::CT_NONE});
      session.add(description, shared(&environment.create_distribution(3, 1)));
      session.commit();
      Floats& gradient = gradients[static_cast<size_t>(rank)];
      session.operation(0).parameters(0).start_gradient(gradient.data());
      if (leave == Leave::removes_operations) session.remove_operations();
      if (leave == Leave::deletes_session) environment.remove_session(&session);
      if (leave == Leave::finalizes) return;
      EXPECT_EQ(gradient.back(), 3);
    });
    for (const Floats& gradient : gradients) EXPECT_EQ(gradient.back(), 3);
  }
}

TEST(MlslNetwork, WhatMayBeSetOnceIsSetOnce) {
  run_environments(2, kNoHeap, [](Environment& environment, int) {
    Session& session = environment.create_session(api::PT_TEST);
    EXPECT_THROW(session.minibatch(), ConfigError);
    session.set_minibatch(4);
    EXPECT_THROW(session.set_minibatch(4), ConfigError);
    EXPECT_THROW(session.create_description(api::OT_SPLIT).validate(nullptr), ConfigError);
    OperationRegInfo& description = session.create_description(api::OT_ACT);
    description.add_input({3, 1, api::DT_FLOAT});
    description.add_output({3, 2, api::DT_FLOAT});
    Distribution& model = environment.create_distribution(1, 2);
    EXPECT_THROW(description.validate(&model), ConfigError);  // 3 maps in 2 parts
    session.add(description, nullptr);
    session.add(description, nullptr);
    Operation& first = session.operation(0);
    EXPECT_THROW(session.commit(), ConfigError);  // no distribution
    for (size_t i = 0; i < 2; ++i)
      session.operation(i).set_distribution(shared(&environment.create_distribution(2, 1)));
    EXPECT_THROW(first.set_distribution(shared(&model)), ConfigError);
    EXPECT_THROW(session.operation(1).set_previous(&first, 0, 0),
                 ConfigError);                                 // 6 elements are not 3
    EXPECT_THROW(first.input(0).start(nullptr), ConfigError);  // before Commit
    EXPECT_THROW(session.operation(2), ConfigError);
    session.commit();
    EXPECT_THROW(session.commit(), ConfigError);
    EXPECT_THROW(session.add(description, nullptr), ConfigError);
    EXPECT_EQ(first.samples().count, 2u);
  });
}

TEST(MlslNetwork, StatisticsCountWhatWasExchanged) {
  run_environments(2, kCounting, [](Environment& environment, int rank) {
    Session& session = build(environment, {{api::OT_CC, 1, 2}, {api::OT_CC, 1, 2}});
    Statistics& statistics = session.statistics();
    EXPECT_TRUE(statistics.started());
    using Tally = Statistics::Tally;
    EXPECT_EQ(statistics.total(&Tally::bytes), 0u);
    EXPECT_GT(statistics.of_operation(0, &Tally::isolated), 0u);
    Operation& from = session.operation(0);
    Operation& to = session.operation(1);
    const Floats values = local_values(from, from.output(0), 1);
    send(from.output(0), values, to.input(0), values.size() / 2, false);
    send(to.input(0), local_values(to, to.input(0), 1), from.output(0), values.size(), false);
    const size_t bytes = kMinibatch * kMaps * kMapSize * sizeof(float);
    EXPECT_EQ(statistics.of_operation(0, &Tally::bytes), bytes);
    EXPECT_EQ(statistics.of_operation(1, &Tally::bytes), bytes);
    EXPECT_GT(statistics.of_operation(0, &Tally::cycles), 0u);
    EXPECT_GT(statistics.total_compute(), 0u);
    const std::string table = statistics.table({{"first", 8}, {"second", 8}});
    EXPECT_NE(table.find("first"), std::string::npos);
    EXPECT_NE(table.find("OA"), std::string::npos);
    statistics.stop();
    send(from.output(0), values, to.input(0), values.size() / 2, false);
    EXPECT_EQ(statistics.of_operation(0, &Tally::bytes), bytes) << "stopped on rank " << rank;
    statistics.reset();
    EXPECT_EQ(statistics.total(&Tally::cycles), 0u);
  });
}

}  // namespace
}  // namespace tutti::mlsl
