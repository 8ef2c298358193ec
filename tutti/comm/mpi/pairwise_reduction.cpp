#include "tutti/comm/mpi/pairwise_reduction.h"

#include <fmt/format.h>

#include <cstdlib>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/mpi/mpi_call.h"

namespace tutti::comm {

void PairwiseReduction::FreeMemory::operator()(float* memory) const { std::free(memory); }

PairwiseReduction::Floats PairwiseReduction::allocate(size_t count) {
  auto* memory = static_cast<float*>(std::aligned_alloc(64, (count * sizeof(float) / 64 + 1) * 64));
  if (memory == nullptr) throw CommError(fmt::format("no memory for {} floats of a reduction", count));
  return Floats(memory);
}

PairwiseReduction::PairwiseReduction(Communicator& communicator, const ReductionSpec& spec, MPI_Comm comm, int tag)
    : Reduction(communicator, spec), tree_(spec.replicas, all_parts(spec.replicas, spec.first)) {
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  const Range mine = slice(rank);
  const size_t stride = (static_cast<size_t>(mine.size()) + 15) / 16 * 16;
  const size_t foreign = tree_.leaves() - spec.parts.size();
  arrived_parts_ = allocate(foreign * stride);
  if (spec.result == nullptr) own_result_ = allocate(spec.count);
  result_ = spec.result != nullptr ? spec.result : own_result_.get();

  float* place = arrived_parts_.get();
  for (int p = 0; p < ranks; ++p) {
    const Range owned{spec.first[static_cast<size_t>(p)], spec.first[static_cast<size_t>(p) + 1]};
    const size_t parts = maximal_subtrees(spec.replicas, owned).size();
    for (size_t i = 0; i < parts; ++i) {
      if (p == rank) {
        slices_.push_back(spec.parts[i] + mine.lo);
        continue;
      }
      slices_.push_back(place);
      add_receive(part_receives_, place, mine.size(), p, tag, comm);  // parts of one sender arrive in order
      place += stride;
    }
  }
  // Each rank begins with its right neighbour, so that no rank is everybody's first target.
  for (int k = 1; k < ranks; ++k) {
    const int peer = (rank + k) % ranks;
    const Range theirs = slice(peer);
    for (const float* part : spec.parts) add_send(part_sends_, part + theirs.lo, theirs.size(), peer, tag, comm);
    add_send(slice_sends_, result_ + mine.lo, mine.size(), peer, tag + 1, comm);
    add_receive(slice_receives_, result_ + theirs.lo, theirs.size(), peer, tag + 1, comm);
  }
}

PairwiseReduction::~PairwiseReduction() {
  // A receive that was abandoned must not write into memory that is gone.
  for (Group* group : {&part_receives_, &slice_receives_})
    for (MPI_Request& request : group->requests)
      if (group->started) MPI_Cancel(&request);
  for (Group* group : {&part_sends_, &part_receives_, &slice_sends_, &slice_receives_})
    for (MPI_Request& request : group->requests) MPI_Request_free(&request);
}

void PairwiseReduction::add_send(Group& group, const float* data, int count, int peer, int tag, MPI_Comm comm) {
  if (count == 0) return;  // a bucket of less than a cache line per rank; the peer posts no receive either
  group.requests.push_back(MPI_REQUEST_NULL);
  group.peers.push_back(peer);
  MPI_CALL(MPI_Send_init(data, count, MPI_FLOAT, peer, tag, comm, &group.requests.back()));
  bytes_sent_ += static_cast<size_t>(count) * sizeof(float);
}

void PairwiseReduction::add_receive(Group& group, float* data, int count, int peer, int tag, MPI_Comm comm) {
  if (count == 0) return;
  group.requests.push_back(MPI_REQUEST_NULL);
  group.peers.push_back(peer);
  MPI_CALL(MPI_Recv_init(data, count, MPI_FLOAT, peer, tag, comm, &group.requests.back()));
}

void PairwiseReduction::Group::start() {
  started = true;
  if (!requests.empty()) MPI_CALL(MPI_Startall(static_cast<int>(requests.size()), requests.data()));
}

bool PairwiseReduction::Group::test() {
  if (!started) return true;
  int flag = 1;
  if (!requests.empty()) MPI_CALL(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE));
  started = flag == 0;
  return flag != 0;
}

bool PairwiseReduction::Group::done(size_t i) const {
  int flag = 0;
  MPI_CALL(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE));
  return flag != 0;
}

void PairwiseReduction::begin() {
  reduced_ = false;
  part_receives_.start();
  slice_receives_.start();
  part_sends_.start();
}

bool PairwiseReduction::advance() {
  if (!reduced_) {
    if (!part_receives_.test()) return false;
    const Range mine = slice(communicator().rank());
    tree_.evaluate(slices_, result_ + mine.lo, static_cast<size_t>(mine.size()));
    reduced_ = true;
    slice_sends_.start();
  }
  const bool received = slice_receives_.test();
  const bool parts_sent = part_sends_.test();
  return slice_sends_.test() && parts_sent && received;
}

Pending PairwiseReduction::describe() const {
  Pending what{.operation = fmt::format("reduction '{}'", name()), .sequence = sequence(), .arrived = {}, .missing = {}};
  std::vector<bool> missing(static_cast<size_t>(communicator().size()), false);
  const auto look = [&missing](const Group& group) {
    for (size_t i = 0; i < group.requests.size(); ++i)
      if (group.started && !group.done(i)) missing[static_cast<size_t>(group.peers[i])] = true;
  };
  look(part_receives_);
  if (reduced_) {
    look(slice_receives_);
    look(part_sends_);
    look(slice_sends_);
    what.operation += " (all gradients are there; waiting for slices of the sum)";
  }
  for (int p = 0; p < communicator().size(); ++p) (missing[static_cast<size_t>(p)] ? what.missing : what.arrived).push_back(p);
  return what;
}

}  // namespace tutti::comm
