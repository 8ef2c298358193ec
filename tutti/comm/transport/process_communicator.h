#pragma once
// The communicator of processes: control messages and transport over a wire, and shared memory
// among ranks of a node that see each other's memory. Internal to comm/; callers use MpiSession.

#include <sys/types.h>

#include <exception>
#include <memory>
#include <optional>

#include "tutti/comm/communicator.h"
#include "tutti/comm/control/control_messages.h"
#include "tutti/comm/transport/process_options.h"
#include "tutti/comm/transport/shm/mailboxes.h"
#include "tutti/comm/transport/shm/process_watch.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

class ProcessCommunicator final : public Communicator {
 public:
  /// Collective among all ranks of `wire`.
  ProcessCommunicator(std::unique_ptr<Wire> wire, const ProcessOptions& options);
  ~ProcessCommunicator() override;

  std::string transport() const override;
  std::string progress_refusal() const override { return wire_->thread_refusal(); }
  std::unique_ptr<Window> allocate(size_t bytes, PeerAccess access) override;
  std::unique_ptr<Window> allocate_once(size_t bytes, std::span<const Slice> mine) override;
  [[noreturn]] void abort(int code, const std::string& message) override;

 protected:
  std::unique_ptr<Communicator> do_split(const std::vector<int>& members, Group group) override;
  std::unique_ptr<Channel> make_channel(std::vector<RoundOfMessages> rounds,
                                        ChannelNumbers& numbers) override;
  std::unique_ptr<Wire::Messages> messages() override { return wire_->messages(); }
  std::unique_ptr<Wire::Inbox> inbox(size_t room, int tag) override {
    return wire_->inbox(room, tag);
  }
  size_t lacking() const override { return mailboxes_->lacking(); }
  void provide(size_t channels, bool rooms) override;
  void do_allgather(Control kind, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    control_.allgather(kind, mine, all);
  }
  void do_combine(std::span<std::byte> value, const Fold& fold) override {
    control_.combine(value, fold);
  }
  void do_broadcast(std::span<std::byte> data, int root) override {
    control_.broadcast(data, root);
  }
  std::string lost_peer(std::span<const int> ranks) const override;
  void raise_alarm() override { wire_->raise_alarm(); }
  std::string alarm() override;

 private:
  // Each rank's process.
  struct Process {
    pid_t id = 0;
    int name_space = 0;  // number of its namespace of process ids
  };
  /// Makes a communicator for a part of `whole`.
  ProcessCommunicator(ProcessCommunicator& whole, std::unique_ptr<Wire> wire,
                      const std::vector<int>& members, Group group);
  void find_places();
  void watch();
  void meet_neighbours();
  // A rank that cannot map the memory of another rank of its node.
  struct Blindness {
    int rank = 0, unseen = 0;
  };
  struct Segments;
  Segments map_segments(size_t bytes, PeerAccess access, bool once = false,
                        std::span<const Slice> mine = {});
  void agree_on_segments(Segments& segments, const std::exception_ptr& refusal);
  std::unique_ptr<Window> window_of(Segments segments) const;
  std::optional<Blindness> look_for_memory();
  void report_blindness(const Blindness& found) const;

  std::unique_ptr<Wire> wire_;
  ControlMessages control_;
  ProcessOptions options_;
  std::vector<Process> processes_;  // by rank
  std::unique_ptr<ProcessWatch> watch_;
  // Among the neighbours, where they are neither all ranks nor this rank alone.
  std::unique_ptr<Wire> near_wire_;
  std::optional<ControlMessages> near_control_;
  std::shared_ptr<WindowRegistry> registry_;  // shared with the communicators split from this one
  std::shared_ptr<Mailboxes> mailboxes_;
};

}  // namespace tutti::comm
