#pragma once
// The communicator of processes: control messages and transport over MPI; windows in shared memory
// when all ranks are on one node and see each other. Internal to comm/mpi; the way in is
// MpiSession.

#include <memory>

#include "tutti/comm/communicator.h"
#include "tutti/comm/control_tree.h"
#include "tutti/comm/mpi/alarm.h"
#include "tutti/comm/mpi/mpi_call.h"
#include "tutti/comm/mpi/session.h"
#include "tutti/comm/shm/process_watch.h"
#include "tutti/comm/shm/window_registry.h"

namespace tutti::comm {

class MpiCommunicator final : public Communicator {
 public:
  /// What a communicator shares with those split from it.
  struct Shared {
    std::shared_ptr<WindowRegistry> registry;
    std::shared_ptr<Alarm> alarm;
    /// Whether the ranks of the whole see each other's memory; unknown where it has several nodes.
    enum class Sight { unknown, all, not_all } sight;
  };
  /// Collective. Duplicates `world` and frees the duplicate. `shared` without members: makes them.
  MpiCommunicator(MPI_Comm world, const MpiOptions& options, Shared shared = {}, Group group = {});
  ~MpiCommunicator() override;

  std::string transport() const override;
  std::string progress_refusal() const override;
  std::unique_ptr<Window> allocate(size_t bytes, PeerAccess access) override;
  [[noreturn]] void abort(int code, const std::string& message) override;

 protected:
  std::unique_ptr<Communicator> make_part(const std::vector<int>& members, Group group) override;
  std::unique_ptr<Channel> make_channel(std::vector<RoundOfMessages> rounds) override;
  void gather_all(Control kind, std::span<const std::byte> mine, std::span<std::byte> all) override;
  void fold_all(std::span<std::byte> value, const Fold& fold) override;
  void spread(std::span<std::byte> data, int root) override;
  std::string lost_peer(std::span<const int> ranks) const override;
  void raise_alarm() override { shared_.alarm->raise(); }
  std::string alarm() override;

 private:
  struct Header;
  static int size_of_group(MPI_Comm comm);
  static int rank_in_group(MPI_Comm comm);
  void find_places();
  struct Arrivals;
  Arrivals from_children(const Header& mine, const ControlTree& tree);
  void to_parent(const Header& mine, const ControlTree& tree, std::span<std::byte> payload);
  void wait_for_peers(Requests& requests, const std::string& what, const std::vector<int>& peers,
                      double grace);
  double grace_for_answer() const;
  [[noreturn]] void report_difference(const Header& mine, int peer, const Header& theirs);
  void down_tree(const char* what, const Header& mine, std::span<std::byte> data, int root);
  size_t relay(const char* what, std::span<std::byte> room, size_t bytes, int root);
  struct Segments;
  Segments map_segments(size_t bytes, PeerAccess access);
  void look_for_memory();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int take_tag();
  bool shared_memory_;   // asked for
  bool shares_ = false;  // decided once, by look_for_memory()
  Nodes nodes_;
  Shared shared_;
  std::unique_ptr<ProcessWatch> watch_;
  std::vector<pid_t> processes_;
  std::vector<char> same_namespace_;  // of process ids, as this rank; by rank
  uint64_t sequence_ = 0;
  int next_tag_;
};

}  // namespace tutti::comm
