#pragma once
// Samples from other nodes' caches instead of files that all nodes share: each rank answers what
// others ask for, over connections of its own, since reader threads ask at any time and collectives
// have theirs. Who asks and who answers prove to each other that they know the job's secret.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tutti/comm/bootstrap/socket.h"
#include "tutti/comm/communicator.h"
#include "tutti/data/store/sample_cache.h"

namespace tutti {

/// Numbers of the ranks' nodes from 0 on, in the order of their first ranks.
std::vector<int> numbered_nodes(const comm::Communicator& communicator);

/// Answers from a cache, in a thread for each connection.
class SampleServer {
 public:
  /// Listens at any free port. CommError where that cannot be.
  explicit SampleServer(std::string secret);
  /// Ends the connections. What hangs in the file system is left behind after a while.
  ~SampleServer();
  SampleServer(const SampleServer&) = delete;
  SampleServer& operator=(const SampleServer&) = delete;

  int port() const;
  /// Until then, and from the destructor on, nobody gets anything. Outlives the server.
  void answer_from(const data::CachedSet& set);

 private:
  struct Shared;
  struct Connection;
  void accept_until_ended();

  std::shared_ptr<Shared> shared_;
  comm::Socket listener_;
  std::vector<std::shared_ptr<Connection>> connections_;  // of thread_ alone, while it runs
  std::jthread thread_;
};

/// The ranks of other nodes to ask.
class SampleClients final : public data::CachePeers {
 public:
  /// Collective: ranks tell each other where they listen.
  SampleClients(comm::Communicator& communicator, std::string secret, int port);

  int nodes() const override { return static_cast<int>(peers_.size()); }
  int node() const override { return node_; }
  /// A node that does not answer is said once and not asked again.
  bool get(int64_t index, std::vector<std::byte>& packed) override;

 private:
  struct Peer {
    std::vector<std::string> hosts;  ///< addresses that it may be reached at
    int port = 0;
    std::string name;
    std::atomic<bool> lost = false;
    std::mutex mutex;
    std::vector<comm::Socket>
        idle;  ///< guarded by mutex: connections on which nothing is under way
  };
  comm::Socket connect(const Peer& peer) const;
  comm::Socket take_connection(Peer& peer) const;

  std::string secret_;
  int node_ = 0;
  std::vector<std::unique_ptr<Peer>> peers_;  // of each node the one that this rank asks
};

}  // namespace tutti
