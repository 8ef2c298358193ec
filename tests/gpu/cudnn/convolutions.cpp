#include "tests/gpu/cudnn/convolutions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "tutti/backend/gpu/library/library_product.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/conv_transpose.h"
#include "tutti/train/network/training_graph.h"

namespace tutti::test {
namespace {

using device::LibraryConvolution;

/// Returns how kernels of libraries ask for a node; nothing if it is no convolution.
std::optional<LibraryConvolution> convolution_of(const graph::Graph& graph,
                                                 const graph::Node& node) {
  const graph::Op* const op = node.op.get();
  if (!dynamic_cast<const ops::Conv*>(op) && !dynamic_cast<const ops::ConvTranspose*>(op))
    return {};
  backend::KernelRequest request{.op = op, .in = {}, .out = {}, .in_free = {}, .out_free = {}};
  for (const graph::Value v : node.in) request.in.push_back(graph.type(v).desc);
  for (const graph::Value v : node.out) request.out.push_back(graph.type(v).desc);
  // A pointwise one may be a dense layer, too, which comes after.
  auto c = std::get<LibraryConvolution>(backend::library_products(request, false).at(0).asked);
  c.makes = device::LayerProduct::y;
  return c;
}

std::span<const int64_t> entries(const LibraryConvolution& c, const std::array<int64_t, 3>& of) {
  return std::span(of).first(static_cast<size_t>(c.spatial));
}

}  // namespace

int64_t batch_of(const std::string& model) {
  constexpr std::pair<std::string_view, int64_t> kBatches[] = {
      {"resnet18", 256},  {"resnet34", 256},    {"resnet50", 256},
      {"resnet101", 256}, {"resnet152", 256},   {"vgg", 64},
      {"vit", 256},       {"fc-densenet", 16},  {"cosmoflow-small", 16},
      {"cosmoflow", 4},   {"deepcam-small", 4}, {"deepcam", 2},
      {"ffn", 32},        {"gpt2", 16},         {"llama3", 2},
      {"llama", 4},       {"tinyllama", 8},     {"transformer", 64}};
  for (const auto& [start, batch] : kBatches)
    if (model.starts_with(start)) return batch;
  return 128;
}

std::vector<LibraryConvolution> convolutions_of(const std::string& model) {
  train::TrainingGraphSpec spec;
  spec.model.name = model;
  spec.model.batch = batch_of(model);
  spec.split = {.tile_bytes = size_t{1} << 60, .slabs = 1};  // as on a device
  const train::TrainingGraph training = train::make_training_graph(spec);
  const graph::Graph& graph = training.graph;
  std::vector<LibraryConvolution> all;
  for (const graph::Node& node : graph.nodes()) {
    const std::optional<LibraryConvolution> one = convolution_of(graph, node);
    if (one && std::ranges::find(all, *one) == all.end()) all.push_back(*one);
  }
  return all;
}

std::string words_of(const LibraryConvolution& c) {
  const auto by = [&](const std::array<int64_t, 3>& of) { return fmt::join(entries(c, of), "x"); };
  const auto all = [&](const std::array<int64_t, 3>& of, int64_t value) {
    return std::ranges::all_of(entries(c, of), [&](int64_t v) { return v == value; });
  };
  std::string words = fmt::format("n{} {}x{} > {}x{} window {}", c.samples, c.inputs, by(c.in),
                                  c.outputs, by(c.out), by(c.window));
  if (!all(c.stride, 1)) words += fmt::format(" stride {}", by(c.stride));
  if (!all(c.dilation, 1)) words += fmt::format(" dilation {}", by(c.dilation));
  if (!all(c.pad_low, 0) || !all(c.pad_high, 0)) words += fmt::format(" pad {}", by(c.pad_low));
  if (c.pad_low != c.pad_high) words += fmt::format("+{}", by(c.pad_high));
  if (c.groups != 1) words += fmt::format(" groups {}", c.groups);
  return words;
}

}  // namespace tutti::test
