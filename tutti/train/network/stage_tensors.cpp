#include "tutti/train/network/stage_tensors.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/exchange/arena_message.h"

namespace tutti {
namespace {

constexpr int kTensorTag = 14'900;  // after the tags of a stage's exchanges

/// Sends all of `data` to `peer`, or receives it from there.
void pass(comm::Communicator& communicator, int peer, bool sends, std::span<std::byte> data) {
  (sends ? send_arena : receive_arena)(communicator, "tensors of a stage", peer, kTensorTag, data);
}

/// Returns "NAME EXTENT EXTENT", one line per tensor. Names have no spaces.
std::string headings(const std::vector<NamedTensor>& tensors) {
  std::string text;
  for (const NamedTensor& tensor : tensors) {
    CHECK(tensor.desc.dtype == DType::f32, "{} is no tensor of a model", tensor.name);
    text += tensor.name;
    for (const int64_t extent : tensor.desc.shape) text += fmt::format(" {}", extent);
    text += '\n';
  }
  return text;
}

std::vector<NamedTensor> parse_headings(const std::string& text) {
  std::vector<NamedTensor> tensors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    NamedTensor& tensor = tensors.emplace_back();
    words >> tensor.name;
    std::vector<int64_t> extents;
    for (int64_t extent = 0; words >> extent;) extents.push_back(extent);
    tensor.desc = {DType::f32, Shape(extents), {}};
    tensor.bytes.resize(tensor.desc.bytes());
  }
  return tensors;
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void send_tensors(comm::Communicator& communicator, std::vector<NamedTensor>& tensors) {
  std::string text = headings(tensors);
  uint64_t length = text.size();
  pass(communicator, 0, true, bytes_of(length));
  pass(communicator, 0, true, std::as_writable_bytes(std::span(text)));
  for (NamedTensor& tensor : tensors) pass(communicator, 0, true, tensor.bytes);
}

std::vector<NamedTensor> receive_tensors(comm::Communicator& communicator, int stage) {
  uint64_t length = 0;
  pass(communicator, stage, false, bytes_of(length));
  std::string text(length, ' ');
  pass(communicator, stage, false, std::as_writable_bytes(std::span(text)));
  std::vector<NamedTensor> tensors = parse_headings(text);
  for (NamedTensor& tensor : tensors) pass(communicator, stage, false, tensor.bytes);
  return tensors;
}

}  // namespace

std::vector<NamedTensor> gather_stages(comm::Communicator& communicator, const PartGrid& grid,
                                       std::vector<NamedTensor> own) {
  if (grid.stages() == 1 || grid.group() > 0) return own;
  if (grid.stage() > 0) {
    send_tensors(communicator, own);
    return own;
  }
  for (int stage = 1; stage < grid.stages(); ++stage)
    for (NamedTensor& tensor : receive_tensors(communicator, stage))
      if (std::ranges::find(own, tensor.name, &NamedTensor::name) == own.end())
        own.push_back(std::move(tensor));  // otherwise several stages have identical copies
  return own;
}

}  // namespace tutti
