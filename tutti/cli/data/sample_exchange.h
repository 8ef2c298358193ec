#pragma once
// Samples from other nodes' caches instead of files that all nodes share. Each rank answers other
// nodes' requests over connections of its own, since reader threads ask at any time and collectives
// have their own connections. Clients and servers prove to each other that they know the job's
// secret.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tutti/comm/bootstrap/listener.h"
#include "tutti/comm/bootstrap/socket.h"
#include "tutti/comm/communicator.h"
#include "tutti/data/store/sample_cache.h"

namespace tutti::cli {

/// Returns the numbers of the ranks' nodes from 0 on, in the order of their first ranks.
std::vector<int> numbered_nodes(const comm::Communicator& communicator);

/// Answers from a cache, in a thread for each connection that has proved to know the secret.
class SampleServer {
 public:
  /// Listens on comm::own_address(address); port 0: any free port. Throws CommError where that is
  /// impossible.
  explicit SampleServer(std::string secret, const std::string& address = {}, int port = 0);
  /// Ends the connections. Threads that hang in the file system are abandoned after a while.
  ~SampleServer();
  SampleServer(const SampleServer&) = delete;
  SampleServer& operator=(const SampleServer&) = delete;

  int port() const { return listener_.port(); }
  /// Returns addresses that it may be reached at.
  const std::vector<std::string>& hosts() const { return hosts_; }
  /// Starts answering from `set`, until the destructor begins; before, clients get nothing. `set`
  /// must outlive the server.
  void answer_from(const data::CachedSet& set);

 private:
  struct Shared;
  struct Connection;
  SampleServer(const std::optional<comm::SocketAddress>& address, std::string secret, int port);
  void serve_until_ended();
  void admit(comm::Stranger& stranger);

  std::shared_ptr<Shared> shared_;
  std::vector<std::string> hosts_;
  comm::Listener listener_;
  std::vector<std::shared_ptr<Connection>> connections_;  // used by thread_ alone, while it runs
  std::jthread thread_;
};

/// The ranks of other nodes to ask.
class SampleClients final : public data::CachePeers {
 public:
  static constexpr std::chrono::milliseconds kAskAgain{30'000};
  /// Ranks exchange the addresses of their servers. A node that did not answer is asked again
  /// `ask_again` later. Collective.
  SampleClients(comm::Communicator& communicator, std::string secret, const SampleServer& own,
                std::chrono::milliseconds ask_again = kAskAgain);

  int nodes() const override { return static_cast<int>(peers_.size()); }
  int node() const override { return node_; }
  /// Gets a sample. A node that does not answer is reported once, and not asked again for a while.
  bool get(int64_t index, std::vector<std::byte>& packed) override;

 private:
  struct Peer {
    std::vector<std::string> hosts;  ///< addresses that it may be reached at
    int port = 0;
    std::string name;
    /// When to ask the peer again, by the steady clock; 0 while it answers.
    std::atomic<std::chrono::steady_clock::rep> lost_until = 0;
    std::mutex mutex;
    std::vector<comm::Socket> idle;  ///< guarded by mutex: connections without a pending request
  };
  comm::Socket connect(const Peer& peer) const;
  static comm::Socket take_idle(Peer& peer);
  bool may_ask(Peer& peer) const;
  bool ask(Peer& peer, int64_t index, std::vector<std::byte>& packed, bool& has_it) const;

  std::string secret_;
  std::chrono::milliseconds ask_again_;
  int node_ = 0;
  std::vector<std::unique_ptr<Peer>> peers_;  // for each node, the peer that this rank asks
};

}  // namespace tutti::cli
