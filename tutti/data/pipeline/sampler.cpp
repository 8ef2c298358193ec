#include "tutti/data/pipeline/sampler.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::data {

namespace {

/// Scales 64 random bits to [0, bound).
int64_t scaled(uint64_t bits, int64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<int64_t>(static_cast<Wide>(bits) * static_cast<uint64_t>(bound) >> 64);
}

}  // namespace

Sampler::Sampler(const SamplerSpec& spec)
    : spec_(spec),
      size_(spec.spacing > 1 && spec.size > 0 ? std::max<int64_t>(1, spec.size / spec.spacing)
                                              : spec.size) {
  if (spec.replicas < 1 || spec.local_batch < 1)
    throw ConfigError(fmt::format("{} replicas of local batch {}: both must be at least 1",
                                  spec.replicas, spec.local_batch));
  check_nodes();
  deal_samples();
  check_size();
}

void Sampler::check_nodes() {
  std::vector<int> replicas(1, 0);
  for (int r = 0; r < spec_.replicas; ++r) {
    const auto node =
        spec_.node_of.empty() ? 0 : static_cast<size_t>(spec_.node_of[static_cast<size_t>(r)]);
    if (node >= replicas.size()) replicas.resize(node + 1, 0);
    place_.push_back(replicas[node]++);
  }
  nodes_ = static_cast<int>(replicas.size());
  if (std::ranges::adjacent_find(replicas, std::ranges::not_equal_to{}) != replicas.end())
    throw ConfigError(fmt::format(
        "data.shuffle = \"shard\" gives each node as many samples: it needs as many replicas on "
        "each node, but they have {}",
        fmt::join(replicas, ", ")));
}

void Sampler::deal_samples() {
  const std::vector<int64_t>& files = spec_.file_samples;
  if (nodes_ > 1 && spec_.spacing == 1 && std::ssize(files) >= nodes_ &&
      std::ranges::any_of(files, [](int64_t n) { return n != 1; })) {
    CHECK(std::accumulate(files.begin(), files.end(), int64_t{0}) == spec_.size,
          "the files do not hold the {} samples", spec_.size);
    const std::vector<int> node_of = deal_files(files, nodes_);
    runs_.resize(static_cast<size_t>(nodes_));
    samples_of_.resize(runs_.size(), 0);
    int64_t first = 0;
    for (size_t f = 0; f < files.size(); first += files[f++]) {
      const auto node = static_cast<size_t>(node_of[f]);
      runs_[node].push_back({samples_of_[node], first});
      samples_of_[node] += files[f];
    }
  } else {
    for (int node = 0; node < nodes_; ++node)
      samples_of_.push_back((size_ - node + nodes_ - 1) / nodes_);
  }
  least_ = *std::ranges::min_element(samples_of_);
}

int64_t Sampler::samples_of(int node) const { return samples_of_[static_cast<size_t>(node)]; }

int64_t Sampler::of_whole_set(int64_t own, int node) const {
  if (runs_.empty()) return own * nodes_ + node;
  const std::vector<Run>& runs = runs_[static_cast<size_t>(node)];
  const Run& run = *std::prev(std::ranges::upper_bound(runs, own, {}, &Run::own));
  return run.first + (own - run.own);
}

void Sampler::check_size() const {
  const std::string batch = fmt::format("{} ({} replicas x local batch {})", global_batch(),
                                        spec_.replicas, spec_.local_batch);
  if (size_ < global_batch())
    throw ConfigError(
        fmt::format("the data set has {} samples{}, fewer than one global batch of {}: lower the "
                    "batch or the replicas, or use more data",
                    size_, spec_.spacing > 1 ? " side by side" : "", batch));
  if (least_ < global_batch() / nodes_)
    throw ConfigError(fmt::format(
        "data.shuffle = \"shard\": of the nodes' samples ({}) not all make up a node's part of one "
        "global batch of {}: lower the batch, or use more or smaller files",
        fmt::join(samples_of_, ", "), batch));
  if (spec_.strict && !runs_.empty() && std::ranges::count(samples_of_, least_) < nodes_)
    throw ConfigError(fmt::format(
        "data.strict: the nodes have {} samples, since files are dealt out to them: use files of "
        "as many samples, as many for each node, or set data.strict = false",
        fmt::join(samples_of_, ", ")));
  if (const int64_t rest = size_ % global_batch(); spec_.strict && rest > 0)
    throw ConfigError(fmt::format(
        "data.strict: {} training samples are no multiple of {}a global batch of {}: {} are left "
        "over; use {} samples or another batch, or set data.strict = false",
        size_,
        nodes_ > 1
            ? fmt::format("{} nodes x a node's batch of {}, ", nodes_, global_batch() / nodes_)
            : "",
        batch, rest, size_ - rest));
}

int64_t Sampler::index(const Position& at, int64_t i) const {
  int64_t result = 0;
  indices(at, i, std::span(&result, 1));
  return result;
}

void Sampler::indices(const Position& at, int64_t first, std::span<int64_t> out) const {
  CHECK(at.epoch >= 0 && at.step >= 0 && at.step < steps_per_epoch(), "epoch {} step {} of {}",
        at.epoch, at.step, steps_per_epoch());
  CHECK(at.replica >= 0 && at.replica < spec_.replicas, "replica {} of {}", at.replica,
        spec_.replicas);
  CHECK(first >= 0 && first + std::ssize(out) <= spec_.local_batch,
        "samples {} + {} of a local batch of {}", first, out.size(), spec_.local_batch);
  const auto replica = static_cast<size_t>(at.replica);
  const int node = nodes_ > 1 ? spec_.node_of[replica] : 0;
  const int64_t start =
      at.step * (global_batch() / nodes_) + place_[replica] * spec_.local_batch + first;
  if (spec_.anywhere) return draw(at, start, node, out);
  const Permutation order = order_of(at.epoch, node);
  order.run(start, out);
  if (nodes_ > 1)
    for (int64_t& sample : out) sample = of_whole_set(sample, node);
  if (spec_.spacing == 1) return;
  const int64_t begin = first_of_epoch(at.epoch);
  for (int64_t& sample : out) sample = begin + sample * spec_.spacing;
}

/// Cuts the windows of a text differently in each epoch; the last one still fits.
int64_t Sampler::first_of_epoch(int64_t epoch) const {
  Rng rng(spec_.seed, Purpose::text_windows, static_cast<uint64_t>(epoch));
  return scaled(rng.next_u64(), std::min(spec_.spacing, spec_.size - (size_ - 1) * spec_.spacing));
}

void Sampler::draw(const Position& at, int64_t start, int node, std::span<int64_t> out) const {
  Rng rng(spec_.seed, Purpose::text_windows, static_cast<uint64_t>(at.epoch * nodes_ + node));
  rng.skip(2 * static_cast<uint64_t>(start));
  for (int64_t& sample : out) sample = scaled(rng.next_u64(), spec_.size);
}

Permutation Sampler::order_of(int64_t epoch, int node) const {
  const std::lock_guard lock(mutex_);
  EpochOrder& kept = orders_[static_cast<size_t>(epoch % 2)];
  if (kept.epoch != epoch || kept.node != node)
    kept = {epoch, node, Permutation(spec_.seed, epoch * nodes_ + node, samples_of(node))};
  return kept.order;
}

std::vector<int> deal_files(std::span<const int64_t> samples, int nodes) {
  std::vector<int> node_of(samples.size(), 0);
  if (std::ssize(samples) < nodes) return node_of;
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](size_t f) { return samples[f]; });
  std::vector<int64_t> load(static_cast<size_t>(nodes), 0);
  for (const size_t f : order) {
    const auto least = std::ranges::min_element(load);
    node_of[f] = static_cast<int>(least - load.begin());
    *least += std::max<int64_t>(samples[f], 1);
  }
  return node_of;
}

Range evaluation_range(int64_t size, int rank, int ranks) {
  CHECK(ranks > 0 && rank >= 0 && rank < ranks, "rank {} of {}", rank, ranks);
  const int64_t base = size / ranks,
                longer = size % ranks;  // the first `longer` ranks take one sample more
  const int64_t begin = rank * base + std::min<int64_t>(rank, longer);
  return {begin, begin + base + (rank < longer ? 1 : 0)};
}

}  // namespace tutti::data
