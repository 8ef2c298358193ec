#include "tutti/comm/transport/tcp/home.h"

#include <fmt/format.h>

#include <sstream>

#include "tutti/base/error.h"
#include "tutti/comm/transport/tcp/frame.h"

namespace tutti::comm::tcp {

std::string Home::text() const {
  std::string text = "tcp2 ";
  for (const uint8_t byte : nonce) text += fmt::format("{:02x}", byte);
  text += fmt::format(" {} {}", port, ranks);
  for (const std::string& host : hosts) text += " " + host;
  return text;
}

Home Home::parse(const std::string& text) {
  Home home;
  std::istringstream in(text);
  std::string kind, nonce;
  in >> kind >> nonce >> home.port >> home.ranks;
  bool sound = in && kind == "tcp2" && nonce.size() == 2 * home.nonce.size() &&
               nonce.find_first_not_of("0123456789abcdef") == std::string::npos && home.port > 0 &&
               home.port < 65536;
  for (size_t i = 0; sound && i < home.nonce.size(); ++i)
    home.nonce[i] = static_cast<uint8_t>(std::stoi(nonce.substr(2 * i, 2), nullptr, 16));
  constexpr size_t kMostHosts = 64;
  for (std::string host; in >> host && home.hosts.size() < kMostHosts;) home.hosts.push_back(host);
  if (!sound || home.hosts.empty())
    throw CommError("what stands in the store as a rank's address is none");
  return home;
}

std::string GroupInStore::key(int rank) const { return fmt::format("{}/rank/{}", prefix, rank); }

std::string conversation(const std::string& group, const Nonce& listener, const Nonce& challenge,
                         const Hello& hello) {
  return fmt::format("{} {} {} {}\n{}{}{}", group.size(), group, hello.from, hello.to,
                     text_of(listener), text_of(challenge), text_of(hello.nonce));
}

}  // namespace tutti::comm::tcp
