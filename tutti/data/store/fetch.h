#pragma once
// Fetching: the files of a data set over HTTP(S), with checksums, going on where a line broke.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

struct FetchItem {
  std::string url, name;  ///< the name that the file gets
  std::string sha256{};   ///< empty: not known
};

/// Of the sets whose files are published one by one: mnist, fashion-mnist. Empty for others.
std::vector<FetchItem> known_downloads(std::string_view dataset);

/// A list of files, one a line: "URL [SHA256] [NAME]"; `#` begins a comment. Without a name it is
/// the last part of the URL. IoError naming file and line where that makes no sense.
std::vector<FetchItem> read_url_list(const std::filesystem::path& list);

struct FetchSpec {
  std::vector<FetchItem> items;
  std::filesystem::path to;
  int tries = 5;              ///< in a row that bring no byte
  double wait_seconds = 1;    ///< before the second one, then twice as long each time
  double stall_seconds = 60;  ///< without a byte
};

struct FetchResult {
  int64_t files = 0, fetched_files = 0;
  int64_t fetched_bytes = 0;  ///< over the network, by this call
};

/// The protocols that a server may send a request on to, as libcurl's
/// CURLOPT_REDIR_PROTOCOLS_STR: what was asked for over https stays there.
const char* redirections_of(std::string_view url);

/// A file gets its name when it is whole and its checksum is right; until then it is NAME.part, and
/// a later call goes on with it, where the server still has the same file. SHA256SUMS beside the
/// files gets the checksums, for `tutti data verify`. IoError naming the URL, and what there is to
/// do.
FetchResult fetch_files(const FetchSpec& spec);

}  // namespace tutti::data
