#include "tutti/train/step/stage_sum.h"

#include <algorithm>
#include <chrono>

namespace tutti::train {
namespace {

constexpr int kSumTag = 14'100;  // after the tags of a stage's exchanges

/// The variable, alone in an arena.
plan::Variable at_its_beginning(plan::Variable variable) {
  variable.offset = 0;
  return variable;
}

}  // namespace

StageSum::StageSum(comm::Communicator& communicator, const split::PartGrid& grid,
                   const split::SharedParameter& shared, const plan::Variable& variable)
    : variable_(variable), sum_(variable.desc.bytes()) {
  const auto floats = static_cast<size_t>(variable.desc.elements());
  for (const int stage : shared.stages) {
    if (stage == grid.stage()) me_ = parts_.size();
    parts_.emplace_back(floats);
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (i == me_) continue;
    comm::MessageSpec spec{.name = "gradient of " + variable.name,
                           .peer = grid.first_peer() + shared.stages[i],
                           .tag = kSumTag + shared.number,
                           .data = std::as_writable_bytes(std::span(parts_[i]))};
    messages_.push_back(communicator.plan_receive(spec));
    spec.data = std::as_writable_bytes(std::span(parts_[me_]));
    messages_.push_back(communicator.plan_send(spec));
  }
}

void StageSum::begin(const float* own) {
  if (under_way_) return;
  under_way_ = true;
  plan::export_plain(at_its_beginning(variable_), reinterpret_cast<const std::byte*>(own),
                     parts_[me_].data());
  for (const auto& message : messages_) message->start();
}

bool StageSum::arrived(const float* own) {
  begin(own);
  return std::ranges::all_of(messages_, [](const auto& message) { return message->test(); });
}

const std::byte* StageSum::wait(const float* own) {
  begin(own);
  const auto began = std::chrono::steady_clock::now();
  for (const auto& message : messages_) message->wait();
  exposed_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::vector<float>& all = parts_.front();
  for (size_t i = 1; i < parts_.size(); ++i)
    for (size_t k = 0; k < all.size(); ++k) all[k] += parts_[i][k];
  plan::import_plain(at_its_beginning(variable_), all.data(), sum_.data());
  under_way_ = false;
  return sum_.data();
}

}  // namespace tutti::train
