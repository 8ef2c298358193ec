#include "tutti/comm/transport/mpi/mpi_channel.h"

#include <algorithm>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/mpi/alarm.h"
#include "tutti/comm/transport/mpi/mpi_call.h"

namespace tutti::comm {
namespace {

// Calls body(data, bytes) for each piece of a block; once for an empty block, which is a signal.
template <class Body>
void for_each_wire_piece(const RoundOfMessages::Item& item, Body body) {
  Wire::for_each_message(item.bytes, [&](size_t begin, size_t bytes) {
    body(item.data == nullptr ? nullptr : item.data + begin, static_cast<int>(bytes));
  });
}

}  // namespace

MpiChannel::MpiChannel(const Communicator& communicator, std::vector<RoundOfMessages> rounds,
                       MPI_Comm comm, int tag)
    : communicator_(communicator), rounds_(std::move(rounds)), comm_(comm), tag_(tag),
      receives_(rounds_.size()), sends_(rounds_.size()) {
  make_requests();
}

void MpiChannel::rebind(std::vector<RoundOfMessages> rounds) {
  free_requests();
  rounds_ = std::move(rounds);
  make_requests();
}

void MpiChannel::make_requests() {
  const auto unbound = [](const RoundOfMessages::Item& item) {
    return item.moves && item.data == nullptr && item.bytes > 0;
  };
  for (const RoundOfMessages& round : rounds_)
    if (std::ranges::any_of(round.receives, unbound) || std::ranges::any_of(round.sends, unbound))
      return;
  const auto next = [](Group& group, int peer, int bytes) -> MPI_Request& {
    group.peers.push_back(peer);
    group.bytes.push_back(bytes);
    group.statuses.emplace_back();
    return group.requests.emplace_back(MPI_REQUEST_NULL);
  };
  for (size_t r = 0; r < rounds_.size(); ++r) {
    const auto send_init = rounds_[r].until_taken ? MPI_Ssend_init : MPI_Send_init;
    for (const auto& item : rounds_[r].receives)
      for_each_wire_piece(item, [&](std::byte* data, int bytes) {
        MPI_CALL(MPI_Recv_init(data, bytes, MPI_BYTE, item.peer, tag_, comm_,
                               &next(receives_[r], item.peer, bytes)));
      });
    for (const auto& item : rounds_[r].sends)
      for_each_wire_piece(item, [&](std::byte* data, int bytes) {
        MPI_CALL(send_init(data, bytes, MPI_BYTE, item.peer, tag_, comm_,
                           &next(sends_[r], item.peer, bytes)));
      });
  }
}

MpiChannel::~MpiChannel() {
  // An abandoned receive must not write into memory that is gone.
  for (Group& group : receives_)
    for (MPI_Request& request : group.requests)
      if (group.active) MPI_Cancel(&request);
  for (const Group& group : sends_)
    if (group.active) Alarm::abandon_send();
  free_requests();
}

void MpiChannel::free_requests() {
  for (auto* groups : {&receives_, &sends_})
    for (Group& group : *groups) {
      for (MPI_Request& request : group.requests) MPI_Request_free(&request);
      group = {};
    }
}

void MpiChannel::Group::start() {
  active = !requests.empty();
  if (active) MPI_CALL(MPI_Startall(static_cast<int>(requests.size()), requests.data()));
}

bool MpiChannel::Group::test(const Communicator& communicator) {
  if (!active) return true;
  int flag = 0;
  const int code =
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, statuses.data());
  if (code == MPI_ERR_IN_STATUS)
    for (size_t i = 0; i < statuses.size(); ++i)
      if (const int its = statuses[i].MPI_ERROR; its != MPI_ERR_PENDING && its != MPI_SUCCESS)
        check_receive(its, statuses[i], communicator.rank_name(peers[i]),
                      static_cast<size_t>(bytes[i]), "MPI_Testall", __FILE__, __LINE__);
  MPI_CALL(code);
  active = flag == 0;
  return !active;
}

void MpiChannel::check_sizes(const Group& group) const {
  for (size_t i = 0; i < group.requests.size(); ++i) {
    int bytes = 0;
    MPI_CALL(MPI_Get_count(&group.statuses[i], MPI_BYTE, &bytes));
    if (bytes != group.bytes[i])
      throw CommError(other_size(communicator_.rank_name(group.peers[i]),
                                 static_cast<size_t>(bytes), static_cast<size_t>(group.bytes[i])));
  }
}

std::vector<int> MpiChannel::Group::unfinished() const {
  std::vector<int> all;
  for (size_t i = 0; active && i < requests.size(); ++i) {
    int flag = 0;
    MPI_CALL(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE));
    if (flag == 0) all.push_back(peers[i]);
  }
  return all;
}

void MpiChannel::expect() {
  round_ = 0;
  if (!receives_.empty() && !receives_[0].active) receives_[0].start();
}

void MpiChannel::post(size_t round) {
  round_ = round;
  if (round > 0 || !receives_[0].active) receives_[round].start();
  sends_[round].start();
}

bool MpiChannel::received() {
  Group& group = receives_[round_];
  const bool was_active = group.active;
  if (!group.test(communicator_)) return false;
  if (was_active) check_sizes(group);
  return true;
}

bool MpiChannel::sent() { return sends_[round_].test(communicator_); }

size_t MpiChannel::leaving() {
  const Group& group = sends_[round_];
  return sent() ? 0 : std::accumulate(group.bytes.begin(), group.bytes.end(), size_t{0});
}

Channel::Missing MpiChannel::missing() const {
  return {receives_[round_].unfinished(), sends_[round_].unfinished()};
}

}  // namespace tutti::comm
