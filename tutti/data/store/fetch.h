#pragma once
// Fetches the files of a data set over HTTP(S), with checksums, and resumes where a connection
// broke.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

struct FetchItem {
  std::string url, name;  ///< name of the local file
  std::string sha256{};   ///< empty: not known
};

/// Returns the files of sets that are published file by file: mnist, fashion-mnist. Empty for
/// others.
std::vector<FetchItem> known_downloads(std::string_view dataset);

/// Reads a list of files, one a line: "URL [SHA256] [NAME]"; `#` begins a comment. The default name
/// is the last part of the URL. IoError naming file and line for a malformed line.
std::vector<FetchItem> read_url_list(const std::filesystem::path& list);

struct FetchSpec {
  std::vector<FetchItem> items;
  std::filesystem::path to;
  int tries = 5;              ///< consecutive attempts that bring no byte
  double wait_seconds = 1;    ///< before the second attempt; doubles each time
  double stall_seconds = 60;  ///< the longest time without a byte
};

struct FetchResult {
  int64_t files = 0, fetched_files = 0;
  int64_t fetched_bytes = 0;  ///< bytes that this call got over the network
};

/// Returns the protocols to which a server may redirect a request, as libcurl's
/// CURLOPT_REDIR_PROTOCOLS_STR: an https request stays with https.
const char* redirections_of(std::string_view url);

/// Fetches all items. A file gets its name when it is whole and its checksum is right; until then
/// it is NAME.part, with which a later call continues if the server still has the same file.
/// Checksums are added to SHA256SUMS beside the files, for `tutti data verify`. IoError naming the
/// URL and the remedy.
FetchResult fetch_files(const FetchSpec& spec);

}  // namespace tutti::data
