#include "tutti/capi/remote/remote_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/capi/remote/lane.h"
#include "tutti/capi/remote/remote_memory.h"
#include "tutti/capi/remote/service.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/run/plan_error.h"

namespace tutti::capi {

RemoteAccess::RemoteAccess(RemoteMemory& memory, Access access, const RemoteSpec& spec)
    : comm::Operation(memory.communicator_,
                      spec.name.empty()
                          ? std::string(remote::name_of(access))
                          : fmt::format("{} '{}'", remote::name_of(access), spec.name)),
      memory_(memory), spec_(spec), request_{.offset = spec.offset,
                                             .bytes = spec.data.size(),
                                             .priority = spec.priority,
                                             .access = access,
                                             .element = spec.element,
                                             .op = spec.op},
      lane_(memory.lane_to(spec.rank)) {
  check();
  set_priority(spec.priority);
  set_patient(spec.patient);
}

RemoteAccess::~RemoteAccess() {
  withdraw();
  if (stage_ != Stage::complete) lane_.leave(this, stage_ != Stage::turn && stage_ != Stage::here);
}

void RemoteAccess::check() const {
  std::string refusal = remote::refusal_of(request_, memory_.bytes(spec_.rank));
  const auto address = reinterpret_cast<uintptr_t>(spec_.data.data());
  if (refusal.empty() && remote::computes(request_.access) &&
      address % comm::size_of(spec_.element) != 0)
    refusal = fmt::format("its data are not aligned as {} are", comm::name_of(spec_.element));
  if (!refusal.empty())
    throw comm::PlanError(
        fmt::format("{} of {}: {}", name(), communicator().rank_name(spec_.rank), refusal));
}

void RemoteAccess::rebind(std::span<std::byte> data) {
  CHECK(!in_flight(), "{}: other data while in flight", name());
  const RemoteSpec before = spec_;
  try {
    spec_.data = data;
    request_.bytes = data.size();
    check();
  } catch (const comm::PlanError&) {
    spec_ = before;
    request_.bytes = before.data.size();
    throw;
  }
}

// Whether this rank does it without the owner: in its own memory, and in a neighbour's where
// nothing is added. The owner does all that changes elements by arithmetic, one after another, and
// counts it, also if there is no element.
bool RemoteAccess::is_here() const {
  const bool moves = request_.access == Access::put || request_.access == Access::get;
  return spec_.rank == communicator().rank() ||
         (moves && (request_.bytes == 0 || memory_.window_->peer(spec_.rank) != nullptr));
}

void RemoteAccess::begin() {
  stage_ = Stage::turn;
  lane_.enter(this);
  step();
}

bool RemoteAccess::advance() {
  // Two ranks that wait for each other's answers serve each other.
  if (memory_.service_) help(*memory_.service_);
  return step();
}

bool RemoteAccess::step() {
  if (stage_ == Stage::turn) {
    if (lane_.broken())  // also where an earlier request that failed for this is still before it
      throw CommError(fmt::format("an earlier request to {} was given up under way",
                                  communicator().rank_name(spec_.rank)));
    if (!lane_.first(this)) return false;
    copied_ = 0;
    is_here() ? void(stage_ = Stage::here) : ask();
  }
  if (stage_ == Stage::here && !work_here()) return false;
  if (stage_ == Stage::asked) hear();
  if (stage_ == Stage::sending && transfer_->advance()) {
    transfer_.reset();
    stage_ = Stage::sent;
  }
  if (stage_ == Stage::sent) hear();
  if (stage_ == Stage::receiving && transfer_->advance()) {
    transfer_.reset();
    complete();
  }
  return stage_ == Stage::complete;
}

// Copies a piece at a time, so that other operations pass.
bool RemoteAccess::work_here() {
  if (request_.access != Access::put && request_.access != Access::get)
    return memory_.own_->apply(request_, spec_.data.data()) && complete();
  const size_t n = std::min(remote::Transfer::kPiece, spec_.data.size() - copied_);
  if (n > 0) {
    std::byte* const there = memory_.window_->peer(spec_.rank) + request_.offset + copied_;
    std::byte* const here = spec_.data.data() + copied_;
    const bool puts = request_.access == Access::put;
    std::memmove(puts ? there : here, puts ? here : there, n);
  }
  copied_ += n;
  return copied_ == spec_.data.size() && complete();
}

void RemoteAccess::ask() {
  const bool behind = remote::brings_data(request_.access) && remote::goes_behind(request_);
  note_.write(request_, spec_.data.data(), behind ? request_.bytes : 0);
  stage_ = Stage::asked;
  expect_answer();
  asking_ = memory_.ways_.messages();
  asking_->send(note_.data(), note_.size(), spec_.rank, memory_.ways_.requests);
}

void RemoteAccess::expect_answer() {
  answer_ = memory_.ways_.messages();
  answer_->receive_up_to(heard_.room(), remote::kMessage, spec_.rank, memory_.ways_.to_origin);
}

void RemoteAccess::hear() {
  if (asking_ && asking_->test()) asking_.reset();
  if (!answer_->test()) return;
  const size_t bytes = answer_->arrived(0);
  remote::Answer text{};
  CHECK(bytes >= sizeof text, "an answer of {} bytes", bytes);
  std::memcpy(&text, heard_.data(), sizeof text);
  if (text == remote::Answer::go && stage_ == Stage::asked) {
    expect_answer();
    transfer_ = transfer(remote::Transfer::Way::send);
    stage_ = Stage::sending;
    return;
  }
  const bool behind = remote::returns_data(request_.access) && remote::goes_behind(request_);
  if (text != remote::Answer::done || bytes != sizeof text + (behind ? request_.bytes : 0)) {
    complete();
    throw CommError(fmt::format("{} refuses it", communicator().rank_name(spec_.rank)));
  }
  if (!remote::returns_data(request_.access)) {
    complete();
  } else if (behind) {
    std::copy_n(heard_.data() + sizeof text, request_.bytes, spec_.data.data());
    complete();
  } else {
    transfer_ = transfer(remote::Transfer::Way::receive);
    stage_ = Stage::receiving;
  }
}

std::unique_ptr<remote::Transfer> RemoteAccess::transfer(remote::Transfer::Way way) {
  const remote::Ways& ways = memory_.ways_;
  const int tag = way == remote::Transfer::Way::send ? ways.to_target : ways.to_origin;
  return std::make_unique<remote::Transfer>(way, spec_.data,
                                            remote::Transfer::Route{ways.messages, spec_.rank, tag},
                                            pacer(), priority());
}

bool RemoteAccess::complete() {
  asking_.reset();
  answer_.reset();
  stage_ = Stage::complete;
  lane_.leave(this, false);
  return true;
}

comm::Pending RemoteAccess::describe() const {
  return {.operation = name(),
          .sequence = sequence(),
          .arrived = {communicator().rank()},
          .missing = {spec_.rank},
          .passed = static_cast<size_t>(stage_) + copied_ + (transfer_ ? transfer_->done() : 0)};
}

}  // namespace tutti::capi
