#pragma once
// Sockets of TCP, over IPv4 and IPv6: what the store and comm/transport/tcp share. Every socket is
// non-blocking and closed in programs that this one starts.

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tutti::comm {

/// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  ~Socket() { close(); }
  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void close() noexcept;

 private:
  int descriptor_ = -1;
};

/// Where a socket is bound or connected to.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string host() const;  ///< "10.0.0.3", "fe80::1"
  int port() const;
  std::string text() const;  ///< "10.0.0.3:29500", "[fe80::1]:29500"
  bool is_loopback() const;
};

/// "host:port", "[::1]:port". Throws ConfigError.
struct HostAndPort {
  std::string host;
  int port = 0;
};
HostAndPort parse_address(const std::string& text);

/// Throws CommError with the resolver's reason.
std::vector<SocketAddress> resolve(const std::string& host, int port);
/// Whether `host`, which stands for `address` here, is meant for this host alone: "localhost" or an
/// address of the loopback. A host's own name is not, though Debian's /etc/hosts makes it
/// 127.0.1.1: on other hosts it stands for an address that they can reach.
bool means_this_host_alone(const std::string& host, const SocketAddress& address);
/// Of the network interfaces that are up: those that other hosts may reach first, then those of
/// this host alone.
std::vector<SocketAddress> own_addresses();
/// The address of this host that `text` names: a host name or an address, an interface ("ib0"), or
/// a network that one of its addresses is in ("10.1.0.0/16"). Where an interface or a network has
/// several it is the first, which is of IPv4 if there is one; of a name's one that is not of the
/// loopback, if there is one. None for an empty text, which stands for all addresses. Throws
/// ConfigError where this host has none of that name.
std::optional<SocketAddress> own_address(const std::string& text);
/// The one of these that own_address() takes for a name; none where none is of this host.
std::optional<SocketAddress> own_among(std::vector<SocketAddress> addresses);
/// At most so many addresses that ranks of other hosts may reach a listener at: the one that it
/// listens on alone, else those of this host. At least one.
std::vector<std::string> hosts_to_reach(const std::optional<SocketAddress>& address, size_t most);

/// Port 0: any that is free. An empty `address` listens to all, IPv4 and IPv6. Throws CommError.
Socket listen_on(const std::optional<SocketAddress>& address, int port);
/// Whether a program on this host may listen on it, at some port.
bool is_of_this_host(const SocketAddress& address);
int port_of(const Socket& listener);
/// A connection that somebody asked for, if there is one, and who it was. None, and errno, if not.
Socket accept_on(const Socket& listener, SocketAddress* from);
/// Begins to connect; what has come of it is known when the socket can be written. None, and errno,
/// where it cannot even begin.
Socket begin_connect(const SocketAddress& to);
/// The error of a socket, 0 if there is none.
int take_error(const Socket& socket);
/// Waits for what has come of begin_connect(). False, and errno, where there is no connection.
bool finish_connect(const Socket& socket, std::chrono::steady_clock::time_point deadline);
/// Whether an attempt to connect, or to be let in, that ended with this errno is worth another one
/// at once. True where a connection was made and ended, as a listener does that has too many
/// (listener.h), or where descriptors lack; false where nobody listens.
bool may_try_again(int error);
/// No delay, and a dead host is noticed though nothing is sent.
void prepare_connection(const Socket& socket);

using SocketDeadline = std::chrono::steady_clock::time_point;
/// Returns whether all bytes went or came before the deadline. False with errno 0 at the end of the
/// connection, and ETIMEDOUT at the deadline.
bool send_all(const Socket& socket, std::span<const std::byte> bytes, SocketDeadline deadline);
bool receive_all(const Socket& socket, std::span<std::byte> bytes, SocketDeadline deadline);

/// A plain value as what is sent, and as room for what comes.
template <class T>
std::span<const std::byte> value_bytes(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> value_room(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace tutti::comm
