#include "tutti/train/network/stage_tensors.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/exchange/arena_message.h"

namespace tutti::train {
namespace {

constexpr int kTensorTag = 14'900;  // after the tags of a stage's exchanges

/// Sends all of `data` to `peer`, or receives it from there.
void pass(comm::Communicator& communicator, int peer, bool sends, std::span<std::byte> data) {
  (sends ? exchange::send_arena : exchange::receive_arena)(communicator, "tensors of a stage", peer,
                                                           kTensorTag, data);
}

void send_text(comm::Communicator& communicator, int peer, std::string text) {
  uint64_t length = text.size();
  pass(communicator, peer, true, std::as_writable_bytes(std::span(&length, 1)));
  pass(communicator, peer, true, std::as_writable_bytes(std::span(text)));
}

std::string receive_text(comm::Communicator& communicator, int peer) {
  uint64_t length = 0;
  pass(communicator, peer, false, std::as_writable_bytes(std::span(&length, 1)));
  std::string text(length, ' ');
  pass(communicator, peer, false, std::as_writable_bytes(std::span(text)));
  return text;
}

/// Returns "NAME EXTENT EXTENT", one line per tensor. Names have no spaces.
std::string headings(const std::vector<keep::TensorRef>& tensors) {
  std::string text;
  for (const keep::TensorRef& tensor : tensors) {
    CHECK(tensor.desc.dtype == DType::f32, "{} is no tensor of a model", tensor.name);
    text += tensor.name;
    for (const int64_t extent : tensor.desc.shape) text += fmt::format(" {}", extent);
    text += '\n';
  }
  return text;
}

std::vector<keep::TensorRef> parse_headings(const std::string& text) {
  std::vector<keep::TensorRef> tensors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    keep::TensorRef& tensor = tensors.emplace_back();
    words >> tensor.name;
    std::vector<int64_t> extents;
    for (int64_t extent = 0; words >> extent;) extents.push_back(extent);
    tensor.desc = {DType::f32, Shape(extents), {}};
  }
  return tensors;
}

/// Adds the tensors of another stage to rank 0's. Where several stages have identical copies, the
/// first one counts, and the stage is told which others to send.
void add_stage(comm::Communicator& communicator, int stage, std::vector<keep::TensorRef>& all) {
  std::string wanted;
  for (keep::TensorRef& tensor : parse_headings(receive_text(communicator, stage))) {
    const bool is_new = std::ranges::find(all, tensor.name, &keep::TensorRef::name) == all.end();
    wanted += is_new ? '1' : '0';
    if (!is_new) continue;
    tensor.give = [&communicator, stage, bytes = tensor.desc.bytes()](const keep::ByteSink& sink) {
      std::vector<std::byte> content(bytes);
      pass(communicator, stage, false, content);
      sink(content);
    };
    all.push_back(std::move(tensor));
  }
  send_text(communicator, stage, wanted);
}

/// Returns a tensor that goes to rank 0 when it is given.
keep::TensorRef sent(comm::Communicator& communicator, const keep::TensorRef& tensor) {
  keep::TensorRef ref{.name = tensor.name, .desc = tensor.desc};
  ref.give = [&communicator, tensor](const keep::ByteSink&) {
    std::vector<std::byte> content = keep::materialise(tensor).bytes;
    pass(communicator, 0, true, content);
  };
  return ref;
}

}  // namespace

std::vector<keep::TensorRef> gather_stages(comm::Communicator& communicator,
                                           const split::PartGrid& grid,
                                           std::vector<keep::TensorRef> own) {
  if (grid.stages() == 1 || grid.group() > 0) return own;
  if (grid.stage() == 0) {
    for (int stage = 1; stage < grid.stages(); ++stage) add_stage(communicator, stage, own);
    return own;
  }
  send_text(communicator, 0, headings(own));
  const std::string wanted = receive_text(communicator, 0);
  std::vector<keep::TensorRef> asked;
  for (size_t t = 0; t < own.size(); ++t)
    if (wanted.at(t) == '1') asked.push_back(sent(communicator, own[t]));
  return asked;
}

}  // namespace tutti::train
