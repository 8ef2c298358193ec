#pragma once
// TCP sockets, over IPv4 and IPv6, for the store and comm/transport/tcp. Every socket is
// non-blocking and closed in programs that this one starts.

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
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
  void close() noexcept;  ///< leaves errno as it is
  /// Returns whether all bytes sent have reached the peer's kernel, or cannot.
  bool has_sent_all() const;

 private:
  int descriptor_ = -1;
};

/// The address to which a socket is bound or connected.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string host() const;  ///< "10.0.0.3", "fe80::1"
  int port() const;
  std::string text() const;  ///< "10.0.0.3:29500", "[fe80::1]:29500"
  bool is_loopback() const;
};

/// The parts of an address. parse_address() reads "host:port", "[::1]:port" and throws ConfigError.
struct HostAndPort {
  std::string host;
  int port = 0;
};
HostAndPort parse_address(const std::string& text);

/// Returns the addresses of a host. Throws CommError with the resolver's reason.
std::vector<SocketAddress> resolve(const std::string& host, int port);
/// Returns whether `host`, which resolves to `address` here, means this host alone: "localhost" or
/// an address of the loopback. A host's own name does not, though Debian's /etc/hosts maps it to
/// 127.0.1.1: on other hosts it resolves to an address that they can reach.
bool means_this_host_alone(const std::string& host, const SocketAddress& address);
/// Returns the addresses of the network interfaces that are up: first those that other hosts may
/// reach, then the addresses that only this host can reach.
std::vector<SocketAddress> own_addresses();
/// Returns the address of this host that `text` names: by a host name or an address, an interface
/// ("ib0"), or a network that contains one of its addresses ("10.1.0.0/16"). Where an interface or
/// a network has several, returns the first, which is IPv4 if there is one; for a name, the first
/// that is not of the loopback, if there is one. Returns none for an empty text, which means all
/// addresses. Throws ConfigError where this host has no such address.
std::optional<SocketAddress> own_address(const std::string& text);
/// Returns which of `addresses` own_address() takes for a name; none where none is of this host.
std::optional<SocketAddress> own_among(std::vector<SocketAddress> addresses);
/// Returns at most `most` addresses at which ranks of other hosts may reach a listener: the one
/// that it listens on alone, otherwise this host's addresses. At least one.
std::vector<std::string> hosts_to_reach(const std::optional<SocketAddress>& address, size_t most);

/// Listens on a port; 0: any free port. Without `address`: on all, IPv4 and IPv6. Throws CommError.
Socket listen_on(const std::optional<SocketAddress>& address, int port);
/// Returns whether a program on this host may listen on the address, at some port.
bool is_of_this_host(const SocketAddress& address);
int port_of(const Socket& listener);
/// Accepts a connection that waits, and stores its address in `from`. Otherwise sets errno.
Socket accept_on(const Socket& listener, SocketAddress* from);
/// Begins to connect; the result is known when the socket is writable. Returns none and sets errno
/// where it cannot even begin.
Socket begin_connect(const SocketAddress& to);
/// Returns the error of a socket, 0 if there is none.
int take_error(const Socket& socket);
/// Waits for the result of begin_connect(). Returns false and sets errno where it has failed.
bool finish_connect(const Socket& socket, std::chrono::steady_clock::time_point deadline);
/// Returns whether an attempt to connect, or to be admitted, that ended with this errno is worth
/// another one at once. True where a connection was made and ended, as by a listener that has too
/// many (listener.h), or where descriptors are missing; false where no process listens.
bool may_try_again(int error);
/// Turns off delays, and makes the kernel notice a dead host though nothing is sent.
void prepare_connection(const Socket& socket);

using SocketDeadline = std::chrono::steady_clock::time_point;
/// Returns whether all bytes were sent or received before the deadline. False with errno 0 at the
/// end of the connection, and with ETIMEDOUT at the deadline.
bool send_all(const Socket& socket, std::span<const std::byte> bytes, SocketDeadline deadline);
bool receive_all(const Socket& socket, std::span<std::byte> bytes, SocketDeadline deadline);

/// Return the bytes of a plain value, to send and to receive into.
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
