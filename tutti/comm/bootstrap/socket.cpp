#include "tutti/comm/bootstrap/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

constexpr int kBacklog = 4096;

const sockaddr* address_of(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

void set_option(const Socket& socket, int level, int name, int value) {
  setsockopt(socket.descriptor(), level, name, &value, sizeof value);
}

SocketAddress copy_of(const sockaddr* address, socklen_t length) {
  SocketAddress copy;
  std::memcpy(&copy.storage, address, length);
  copy.length = length;
  return copy;
}

Socket open_socket(int family) {
  return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Returns none and sets errno where it cannot listen.
Socket try_listen(const SocketAddress& address) {
  Socket socket = open_socket(address.storage.ss_family);
  if (!socket) return socket;
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.storage.ss_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.descriptor(), address_of(address), address.length) != 0 ||
      ::listen(socket.descriptor(), kBacklog) != 0)
    socket.close();
  return socket;
}

void set_port(SocketAddress& address, int port) {
  const uint16_t number = htons(static_cast<uint16_t>(port));
  if (address.storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = number;
  else
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = number;
}

SocketAddress any_address(int family) {
  SocketAddress any;
  any.storage.ss_family = static_cast<sa_family_t>(family);  // zeros are the wildcard of both
  any.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return any;
}

struct InterfaceAddress {
  std::string interface;
  SocketAddress address;
};

// Returns the addresses of interfaces that are up.
std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> all;
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return all;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family == AF_INET)
      all.push_back({at->ifa_name, copy_of(at->ifa_addr, sizeof(sockaddr_in))});
    if (family == AF_INET6 &&
        !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr))
      all.push_back({at->ifa_name, copy_of(at->ifa_addr, sizeof(sockaddr_in6))});
  }
  return all;
}

// Returns the bytes of an IPv4 or IPv6 address, in network order.
std::span<const uint8_t> address_bytes(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET6)
    return reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr.s6_addr;
  const auto* ip = &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr;
  return {reinterpret_cast<const uint8_t*>(ip), sizeof *ip};
}

struct Network {
  std::vector<uint8_t> bytes;
  size_t bits = 0;  // leading bits that all its addresses share
};

// Reads "10.1.0.0/16"; returns none for another text.
std::optional<Network> network_named(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string address = text.substr(0, slash), bits = text.substr(slash + 1);
  Network network{std::vector<uint8_t>(address.find(':') == std::string::npos ? 4 : 16), 0};
  const int family = network.bytes.size() == 4 ? AF_INET : AF_INET6;
  if (inet_pton(family, address.c_str(), network.bytes.data()) != 1 || bits.empty() ||
      bits.size() > 3 || bits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  network.bits = std::stoul(bits);
  if (network.bits > 8 * network.bytes.size()) return std::nullopt;
  return network;
}

bool contains(const Network& network, const SocketAddress& address) {
  const std::span<const uint8_t> bytes = address_bytes(address);
  if (bytes.size() != network.bytes.size()) return false;
  for (size_t bit = 0; bit < network.bits; ++bit)
    if (((bytes[bit / 8] ^ network.bytes[bit / 8]) >> (7 - bit % 8) & 1) != 0) return false;
  return true;
}

void put_loopback_last(std::vector<SocketAddress>& addresses) {
  std::ranges::stable_partition(addresses, [](const SocketAddress& a) { return !a.is_loopback(); });
}

// Waits until the socket is ready or the deadline has passed. A signal may end the wait, too: the
// caller tries, and waits again.
bool wait_until_ready(const Socket& socket, short events, SocketDeadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  const int milliseconds = static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 1000));
  pollfd entry{socket.descriptor(), events, 0};
  ::poll(&entry, 1, milliseconds);
  if (std::chrono::steady_clock::now() < deadline || entry.revents != 0) return true;
  errno = ETIMEDOUT;
  return false;
}

template <class Bytes, class Move>
bool move_all(const Socket& socket, Bytes bytes, SocketDeadline deadline, short events, Move move) {
  while (!bytes.empty()) {
    const ssize_t n = move(bytes);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (n == 0) {
      errno = 0;
      return false;
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      return false;
    } else if (!wait_until_ready(socket, events, deadline)) {
      return false;
    }
  }
  return true;
}

}  // namespace

void Socket::close() noexcept {
  const int error = errno;
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  errno = error;
}

bool Socket::has_sent_all() const {
  int left = 0;
  return ioctl(descriptor_, SIOCOUTQ, &left) != 0 || left == 0;
}

std::string SocketAddress::host() const {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address_of(*this), length, text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "(no address)";
  return text.data();
}

int SocketAddress::port() const {
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

std::string SocketAddress::text() const {
  return storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host(), port())
                                       : fmt::format("{}:{}", host(), port());
}

bool SocketAddress::is_loopback() const {
  if (storage.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
}

HostAndPort parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  const auto refuse = [&] {
    throw ConfigError(fmt::format("'{}' is no address: host:port is wanted, or [::1]:port", text));
  };
  if (colon == std::string::npos) refuse();
  HostAndPort parts{text.substr(0, colon), 0};
  const std::string port = text.substr(colon + 1);
  if (parts.host.starts_with('[') && parts.host.ends_with(']'))
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  else if (parts.host.find(':') != std::string::npos)
    refuse();
  if (parts.host.empty() || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos)
    refuse();
  parts.port = std::stoi(port);
  if (parts.port > 65535) refuse();
  return parts;
}

std::vector<SocketAddress> resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0)
    throw CommError(fmt::format("the host '{}' is not found: {}", host, gai_strerror(code)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<SocketAddress> all;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next)
    all.push_back(copy_of(at->ai_addr, at->ai_addrlen));
  return all;
}

bool means_this_host_alone(const std::string& host, const SocketAddress& address) {
  return address.is_loopback() && (host == "localhost" || host == address.host());
}

std::vector<SocketAddress> own_addresses() {
  std::vector<SocketAddress> all;
  for (InterfaceAddress& one : interface_addresses()) all.push_back(std::move(one.address));
  put_loopback_last(all);
  return all;
}

std::optional<SocketAddress> own_among(std::vector<SocketAddress> addresses) {
  put_loopback_last(addresses);
  const auto found = std::ranges::find_if(addresses, is_of_this_host);
  return found == addresses.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> hosts_to_reach(const std::optional<SocketAddress>& address, size_t most) {
  if (address) return {address->host()};
  std::vector<std::string> hosts;
  for (const SocketAddress& own : own_addresses())
    if (hosts.size() < most) hosts.push_back(own.host());
  if (hosts.empty()) hosts.emplace_back("127.0.0.1");
  return hosts;
}

std::optional<SocketAddress> own_address(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::vector<InterfaceAddress> all = interface_addresses();
  const auto network = network_named(text);
  for (const InterfaceAddress& one : all)
    if (network ? contains(*network, one.address) : one.interface == text) return one.address;
  if (!network) try {
      if (const auto own = own_among(resolve(text, 0))) return own;
    } catch (const CommError&) {}
  std::string known;
  for (const InterfaceAddress& one : all)
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", one.address.host(), one.interface);
  throw ConfigError(fmt::format(
      "'{}' names no address of this host: give an address or a name of it, an interface, or a "
      "network as 10.1.0.0/16; it has {}",
      text, known));
}

Socket listen_on(const std::optional<SocketAddress>& address, int port) {
  std::vector<SocketAddress> choices;
  if (address)
    choices = {*address};
  else
    choices = {any_address(AF_INET6), any_address(AF_INET)};
  for (SocketAddress& choice : choices) {
    set_port(choice, port);
    if (Socket socket = try_listen(choice)) return socket;
  }
  const int why = errno;
  throw CommError(fmt::format(
      "cannot listen on {}: {}{}", choices.back().text(),
      why == EACCES ? std::strerror(why) : file_error(why),  // file_error() would mention files
      why == EADDRINUSE ? ": another program, or another job, has this port; choose another one"
                        : ""));
}

bool is_of_this_host(const SocketAddress& address) {
  SocketAddress any_port = address;
  set_port(any_port, 0);
  return static_cast<bool>(try_listen(any_port)) || errno == EADDRINUSE || errno == EACCES;
}

int port_of(const Socket& listener) {
  SocketAddress address;
  address.length = sizeof address.storage;
  getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&address.storage),
              &address.length);
  return address.port();
}

Socket accept_on(const Socket& listener, SocketAddress* from) {
  from->length = sizeof from->storage;
  Socket socket(::accept4(listener.descriptor(), reinterpret_cast<sockaddr*>(&from->storage),
                          &from->length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) prepare_connection(socket);
  return socket;
}

Socket begin_connect(const SocketAddress& to) {
  Socket socket = open_socket(to.storage.ss_family);
  if (!socket) return socket;
  prepare_connection(socket);
  if (::connect(socket.descriptor(), address_of(to), to.length) != 0 && errno != EINPROGRESS)
    socket.close();
  return socket;
}

int take_error(const Socket& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

bool finish_connect(const Socket& socket, SocketDeadline deadline) {
  for (;;) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    errno = take_error(socket);
    if (errno != 0) return false;
    if (getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&peer), &length) == 0)
      return true;
    if (!wait_until_ready(socket, POLLOUT, deadline)) return false;
  }
}

bool may_try_again(int error) {
  return error == 0 || error == ECONNRESET || error == EPIPE || error == ETIMEDOUT ||
         error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// Leaves the sizes of the buffers to the kernel: it lets them grow as the connection needs, beyond
// the sizes that a program may set, but not for a socket whose program has set one.
void prepare_connection(const Socket& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

bool send_all(const Socket& socket, std::span<const std::byte> bytes, SocketDeadline deadline) {
  return move_all(socket, bytes, deadline, POLLOUT, [&](std::span<const std::byte> rest) {
    return ::send(socket.descriptor(), rest.data(), rest.size(), MSG_NOSIGNAL);
  });
}

bool receive_all(const Socket& socket, std::span<std::byte> bytes, SocketDeadline deadline) {
  return move_all(socket, bytes, deadline, POLLIN, [&](std::span<std::byte> rest) {
    return ::recv(socket.descriptor(), rest.data(), rest.size(), 0);
  });
}

}  // namespace tutti::comm
