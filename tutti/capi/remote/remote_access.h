#pragma once
// RemoteAccess: one put, get, accumulate or fetch in memory that another rank exposes, planned once
// and started as often as wanted. Callers use RemoteMemory.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "tutti/capi/remote/request.h"
#include "tutti/capi/remote/transfer.h"
#include "tutti/comm/run/operation.h"

namespace tutti::capi {

class RemoteMemory;
namespace remote {
class Lane;
}

/// The request. The local data belong to the caller and stay in use from start() to completion:
/// read by a put and an accumulate, written by a get, both by a fetch.
struct RemoteSpec {
  std::string name = {};  ///< for error messages; empty: "put"
  int rank = 0;           ///< rank that exposes the memory; may be this rank
  size_t offset = 0;      ///< in that memory, in bytes
  std::span<std::byte> data = {};
  comm::Element element =
      comm::Element::f32;  ///< for accumulate and fetch: data and offset are whole elements
  comm::ReduceOp op = comm::ReduceOp::sum;  ///< for accumulate and fetch; no mean
  bool atomic = false;  ///< for a get: between two accumulates, never during one
  int priority = 0;     ///< here and at the target; not among requests to one target
  /// The wait has no time-out: it fails only when the target is found dead or another rank gives
  /// up. Otherwise the communicator's time-out applies.
  bool patient = false;
};

/// Complete when the target's memory has changed, or the data are here. Requests of one rank to one
/// target are done one after another, in the order of start(). If it is destroyed in flight while
/// under way at the target, no other request of this rank to that target is possible any more.
class RemoteAccess final : public comm::Operation {
 public:
  /// Throws PlanError for a rank that does not exist, a range that is not in its memory, elements
  /// that are not whole, and a type or operation without arithmetic. `memory` outlives this.
  RemoteAccess(RemoteMemory& memory, Access access, const RemoteSpec& spec);
  ~RemoteAccess() override;

  /// Sets other data for later starts. Throws as the constructor does. Not while in flight.
  void rebind(std::span<std::byte> data);

 private:
  enum class Stage { turn, here, asked, sending, sent, receiving, complete };
  void begin() override;
  bool advance() override;
  comm::Pending describe() const override;
  void check() const;
  bool is_here() const;
  bool step();
  bool work_here();
  void ask();
  void hear();
  void expect_answer();
  std::unique_ptr<remote::Transfer> transfer(remote::Transfer::Way way);
  bool complete();

  RemoteMemory& memory_;
  RemoteSpec spec_;
  remote::Request request_;
  remote::Lane& lane_;  // shared by all requests to this target
  Stage stage_ = Stage::complete;
  size_t copied_ = 0;  // bytes copied by this rank itself
  remote::Note note_, heard_;
  std::unique_ptr<comm::Wire::Messages> asking_, answer_;
  std::unique_ptr<remote::Transfer> transfer_;
};

}  // namespace tutti::capi
