#pragma once
// A store in one process that the others reach over TCP: a thread there serves it, everybody
// connects, itself included.
//
// Both sides of a connection prove that they know the job's secret before anything else is said
// (secret.h); who does not, learns and changes nothing. What is said later is neither encrypted nor
// signed: the secret keeps strangers out, not whoever can change packets on the way.
//
// A request and an answer at a time on each connection. The server reads a request into room of a
// fixed size, keeps few connections that have not proved themselves (listener.h), and bounds what
// it keeps.

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
  /// `host`: "127.0.0.1", "::1" or "localhost" are listened to alone; of other names all addresses
  /// of this host, because what a host takes its own name for is often not what others do. `port`
  /// 0: any that is free. Throws CommError where the port is taken, ConfigError for an empty
  /// secret.
  TcpStoreServer(const std::string& host, int port, std::string secret);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  int port() const { return port_; }
  /// From now on connections are refused; those that exist go on. A rank of a job that comes later,
  /// at the same address, then waits for that job's server instead of finding this one.
  void admit_nobody();
  static constexpr size_t kMostBytes = size_t{256} << 20;  ///< of all keys and values

 private:
  class Service;
  Socket wake_;  // readable when the thread shall end
  int port_ = 0;
  std::unique_ptr<Service> service_;
  std::jthread thread_;
};

class TcpStore final : public Store {
 public:
  /// Connects, and waits up to `timeout` seconds for a server. A connection that ends before it was
  /// answered, as where strangers besiege the server, is made again. Later requests have the same
  /// time beyond their own, but do not wait for a server that has been there and is gone: what it
  /// kept is gone, too. Those of several threads go side by side. Throws CommError; also for
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
  std::mutex mutex_;          // of idle_
  std::vector<Socket> idle_;  // connections on which nothing is under way
};

}  // namespace tutti::comm
