#pragma once
// Messages of a planned operation over MPI: persistent requests, made once, and again after a
// rebind(). Internal to comm/transport/mpi.
//
// All messages of a channel have one tag. Messages from one rank to another arrive in their order,
// also across rounds, because MPI does not let messages of equal tags overtake each other.

#include <mpi.h>

#include <vector>

#include "tutti/comm/transport/channel.h"

namespace tutti::comm {

class MpiChannel final : public Channel {
 public:
  /// `communicator` names ranks in messages.
  MpiChannel(const Communicator& communicator, std::vector<RoundOfMessages> rounds, MPI_Comm comm,
             int tag);
  ~MpiChannel() override;

  void expect() override;
  void post(size_t round) override;
  void rebind(std::vector<RoundOfMessages> rounds) override;
  bool received() override;
  const std::byte* where(size_t i) const override { return rounds_[round_].receives[i].data; }
  void release() override {}
  bool sent() override;
  size_t leaving() override;
  Missing missing() const override;

 private:
  // The requests of one direction of one round, with each one's peer and bytes.
  struct Group {
    std::vector<MPI_Request> requests;
    std::vector<int> peers;
    std::vector<int> bytes;
    std::vector<MPI_Status> statuses;
    bool active = false;
    void start();
    bool test(const Communicator& communicator);
    std::vector<int> unfinished() const;  // their peers; may come twice
  };
  void make_requests();
  void free_requests();
  // Checks that arrived messages have the expected sizes.
  void check_sizes(const Group& group) const;

  const Communicator& communicator_;
  std::vector<RoundOfMessages> rounds_;
  MPI_Comm comm_;
  int tag_;
  std::vector<Group> receives_, sends_;  // by round
  size_t round_ = 0;
};

}  // namespace tutti::comm
