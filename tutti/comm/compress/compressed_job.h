#pragma once
// One rank's part in compressed reductions, for tests.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tutti/base/numeric/rng.h"
#include "tutti/comm/compress/codec/codec_samples.h"
#include "tutti/comm/compress/compressed_reduction.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {

constexpr const char* kMethods[] = {"bf16",       "fp16",      "int8",        "onebit",
                                    "topk:0.01",  "topk:0.3",  "hitopk:0.05", "hitopk:0.3",
                                    "powersgd:1", "powersgd:4"};

// Returns the gradient of one rank's part, a function of its arguments alone.
inline Floats gradient(int step, int rank, size_t count, int part = 0) {
  Rng rng(static_cast<uint64_t>(step), Purpose::test, static_cast<uint64_t>(rank * 100 + part));
  Floats g(count);
  for (float& x : g) x = rng.normal();
  return g;
}

// One rank's share of a compressed reduction.
struct CompressedJob {
  struct Options {
    std::string method;
    size_t count = 0;
    int parts = 1;
    const NodeGroups* groups = nullptr;
    std::vector<MatrixBlock> matrices = {};
  };
  CompressedJob(Communicator& communicator, const Options& options)
      : c(communicator), count(options.count),
        gradients(static_cast<size_t>(options.parts), Floats(options.count)), sum(options.count) {
    spec.name = "bucket 2";
    spec.count = count;
    for (Floats& part : gradients) spec.parts.push_back(part.data());
    spec.result = sum.data();
    spec.matrices = options.matrices;
    spec.groups = options.groups;
    plan(options.method);
  }
  void plan(const std::string& method) {
    spec.compression = parse_compression(method);
    layout = state_layout(c, spec);
    if (state.empty()) state.assign(layout.floats, 0.0f);
    spec.state = state;
    reduction.reset();
    reduction = plan_compressed(c, spec);
  }
  void fill(int step) {
    for (size_t p = 0; p < gradients.size(); ++p)
      std::ranges::copy(gradient(step, c.rank(), count, static_cast<int>(p)), gradients[p].begin());
  }
  Floats run() {
    reduction->run();
    return sum;
  }
  Floats run(int step) {
    fill(step);
    return run();
  }

  Communicator& c;
  size_t count;
  std::vector<Floats> gradients;
  Floats sum;
  CompressedReductionSpec spec;
  StateLayout layout;
  Floats state;
  std::unique_ptr<CompressedReduction> reduction;
};
using Jobs = std::vector<std::unique_ptr<CompressedJob>>;
inline Jobs::value_type job_of(Communicator& c, const CompressedJob::Options& options) {
  return std::make_unique<CompressedJob>(c, options);
}

// Expects the same bits on all ranks.
inline void expect_same_everywhere(Communicator& c, const Floats& result, const std::string& what) {
  Floats zeros = result;
  c.broadcast(std::as_writable_bytes(std::span(zeros)), 0);
  EXPECT_TRUE(same_bits(result, zeros)) << what << ": rank " << c.rank() << " and rank 0";
}

// All jobs, of equal count, are in flight together. Expects that every gradient given until now is
// either in the results or in a residual.
inline void expect_nothing_lost(Communicator& c, const Jobs& jobs, int steps,
                                const std::string& what) {
  const size_t count = jobs[0]->count;
  const size_t parts = jobs[0]->gradients.size();
  std::vector<double> given(count, 0.0), sent(count * jobs.size(), 0.0);
  double largest = 1;
  for (int step = 0; step < steps; ++step) {
    for (int p = 0; p < c.size(); ++p)
      for (size_t part = 0; part < parts; ++part) {
        const Floats g = gradient(step, p, count, static_cast<int>(part));
        for (size_t i = 0; i < count; ++i) given[i] += g[i];
      }
    for (const auto& job : jobs) job->fill(step), job->reduction->start();
    Floats results;
    for (const auto& job : jobs) {
      job->reduction->wait();
      results.insert(results.end(), job->sum.begin(), job->sum.end());
    }
    expect_same_everywhere(c, results, what);
    for (size_t i = 0; i < results.size(); ++i) {
      sent[i] += results[i];
      largest = std::max(largest, std::fabs(static_cast<double>(results[i])));
    }
  }
  std::vector<double> rest(sent.size());
  for (size_t j = 0; j < jobs.size(); ++j) {
    Floats mine(count, 0.0f), state = jobs[j]->state;
    release_residuals(jobs[j]->layout, state, mine);
    std::ranges::copy(mine, rest.begin() + static_cast<std::ptrdiff_t>(j * count));
  }
  c.sum(rest);
  for (size_t j = 0; j < jobs.size(); ++j) {
    double worst = 0;
    for (size_t i = 0; i < count; ++i)
      worst = std::max(worst, std::fabs(sent[j * count + i] + rest[j * count + i] - given[i]));
    EXPECT_LT(worst, 1e-6 * largest * steps * c.size())
        << to_string(jobs[j]->spec.compression) << ", " << what;
  }
}

}  // namespace tutti::comm
