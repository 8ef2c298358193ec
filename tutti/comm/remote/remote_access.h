#pragma once
// RemoteAccess: one put, get, accumulate or fetch in memory that another rank exposes, planned once
// and started as often as wanted. The way in is RemoteMemory.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "tutti/comm/remote/request.h"
#include "tutti/comm/remote/transfer.h"
#include "tutti/comm/run/operation.h"

namespace tutti::comm {

class RemoteMemory;
namespace remote {
class Lane;
}

/// What is asked for. The local data belong to the caller and stay in use from start() to
/// completion: read by a put and an accumulate, written by a get, both by a fetch.
struct RemoteSpec {
  std::string name = {};  ///< for error messages; empty: "put"
  int rank = 0;           ///< whose memory; may be this rank's
  size_t offset = 0;      ///< of it, in bytes
  std::span<std::byte> data = {};
  Element element = Element::f32;  ///< of accumulate and fetch: data and offset are whole elements
  ReduceOp op = ReduceOp::sum;     ///< of accumulate and fetch; no mean
  bool atomic = false;             ///< of a get: between two accumulates, never in the midst of one
  int priority = 0;                ///< here and at the target; not among requests to one target
  /// The wait may last as long as it must: it fails only when the target is found dead or another
  /// rank gives up. Otherwise it has the communicator's time-out.
  bool patient = false;
};

/// Complete when the target's memory has changed, or the data are here. Requests of one rank to one
/// target are done one after another, in the order of start(). Destroyed in flight it may be under
/// way at the target; then no other request of this rank to that target is possible any more.
class RemoteAccess final : public Operation {
 public:
  /// Throws PlanError for a rank that is none, a range that is not in its memory, elements that are
  /// not whole, and a type or operation without arithmetic. `memory` outlives it.
  RemoteAccess(RemoteMemory& memory, Access access, const RemoteSpec& spec);
  ~RemoteAccess() override;

  /// Other data for later starts. Throws as the constructor. Not while in flight.
  void rebind(std::span<std::byte> data);

 private:
  enum class Stage { turn, here, asked, sending, sent, receiving, complete };
  void begin() override;
  bool advance() override;
  Pending describe() const override;
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
  remote::Lane& lane_;  // of all requests to this target
  Stage stage_ = Stage::complete;
  size_t copied_ = 0;  // bytes, of what is done here
  remote::Note note_, heard_;
  std::unique_ptr<Wire::Messages> asking_, answer_;
  std::unique_ptr<remote::Transfer> transfer_;
};

}  // namespace tutti::comm
