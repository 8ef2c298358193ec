#pragma once
// A store in one process that the others reach over TCP: a thread there serves it, and all
// processes connect to it, also its own.
//
// Both sides of a connection prove that they know the job's secret before anything else (secret.h);
// a process without it learns and changes nothing. Later messages are neither encrypted nor signed:
// the secret keeps strangers out, but not attackers who can change packets on the way.
//
// Each connection has one request and answer at a time. The server reads a request into space of a
// fixed size, keeps few connections without proof (listener.h), and bounds its memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tutti/comm/bootstrap/socket.h"
#include "tutti/comm/bootstrap/store.h"

namespace tutti::comm {

class TcpStoreServer {
 public:
  /// Serves at `host`. It listens on "127.0.0.1", "::1" or "localhost" alone; for other names on
  /// all addresses of this host, because a host often resolves its own name in another way than
  /// others do. `port` 0: any free port. Throws CommError where the port is taken, ConfigError for
  /// an empty secret.
  TcpStoreServer(const std::string& host, int port, std::string secret);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  int port() const { return port_; }
  /// Refuses connections from now on; existing ones go on. A rank of a later job, at the same
  /// address, then waits for that job's server instead of finding this one.
  void admit_nobody();
  static constexpr size_t kMostBytes = size_t{256} << 20;  ///< bytes of all keys and values

 private:
  class Service;
  Socket wake_;  // readable when the thread must end
  int port_ = 0;
  std::unique_ptr<Service> service_;
  std::jthread thread_;
};

class TcpStore final : public Store {
 public:
  /// Connects, and waits up to `timeout` seconds for a server. A connection that ends before it was
  /// answered, as at a server with many strangers, is made again. Later requests have the same time
  /// beyond their own, but do not wait for a server that was there and is gone, because its values
  /// are gone, too. Requests of several threads run side by side. Throws CommError; also for
  /// another secret than the server's.
  TcpStore(const std::string& host, int port, std::string secret, double timeout);

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, double seconds) override;

 private:
  struct ReferenceResult;
  enum class Server { starting, running };
  Socket connect(SocketDeadline deadline, Server server) const;
  Socket take_connection(SocketDeadline deadline);
  bool meet(const Socket& socket, const SocketAddress& address, SocketDeadline deadline) const;
  ReferenceResult ask(uint32_t operation, const std::string& key, const std::string& value,
                      double seconds);

  std::string host_;
  int port_;
  std::string secret_;
  double timeout_;
  std::mutex mutex_;          // guards idle_
  std::vector<Socket> idle_;  // connections on which nothing is under way
};

}  // namespace tutti::comm
