#include "tutti/data/text/token_file.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

constexpr std::string_view kTokenMagic = "TUTTITOK";
constexpr uint32_t kTokenVersion = 1;
constexpr size_t kHeaderSum = 56;  // place of the header's own checksum
using HeaderBytes = std::array<uint8_t, kTokenHeaderBytes>;

template <class T>
void put_at(HeaderBytes& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

HeaderBytes header_bytes(const TokenHeader& header) {
  HeaderBytes bytes{};
  std::ranges::copy(kTokenMagic, bytes.begin());
  put_at(bytes, 8, kTokenVersion);
  put_at(bytes, 12, header.token_bytes);
  put_at(bytes, 16, static_cast<uint32_t>(header.vocabulary));
  put_at(bytes, 20, header.end_token);
  put_at(bytes, 24, header.count);
  put_at(bytes, 32, header.checksum);
  put_at(bytes, 40, static_cast<uint32_t>(header.shard));
  put_at(bytes, 44, static_cast<uint32_t>(header.shards));
  put_at(bytes, 48, header.tokenizer);
  put_at(bytes, kHeaderSum, XXH64(bytes.data(), kHeaderSum, 0));
  return bytes;
}

constexpr const char* kAnew = "make it anew with 'tutti data tokenize'";

TokenHeader parse_header(const HeaderBytes& bytes, const std::string& name) {
  const auto refuse = [&](const std::string& what) {
    throw BadFile("{}: {}: {}", name, what, kAnew);
  };
  if (const auto version = number_at<uint32_t>(bytes.data() + 8); version != kTokenVersion)
    refuse(fmt::format("is of version {}{}, this program reads version {}", version,
                       version > kTokenVersion ? ", that of a later Tutti" : "", kTokenVersion));
  if (number_at<uint64_t>(bytes.data() + kHeaderSum) != XXH64(bytes.data(), kHeaderSum, 0))
    refuse("its header is damaged: the checksum does not fit");
  TokenHeader header{.token_bytes = number_at<uint32_t>(bytes.data() + 12),
                     .vocabulary = number_at<uint32_t>(bytes.data() + 16),
                     .end_token = number_at<int32_t>(bytes.data() + 20),
                     .count = number_at<int64_t>(bytes.data() + 24),
                     .checksum = number_at<uint64_t>(bytes.data() + 32),
                     .shard = number_at<uint32_t>(bytes.data() + 40),
                     .shards = number_at<uint32_t>(bytes.data() + 44),
                     .tokenizer = number_at<uint64_t>(bytes.data() + 48)};
  if (header.token_bytes != 2 && header.token_bytes != 4)
    refuse(fmt::format("says that a token has {} bytes, which are 2 or 4", header.token_bytes));
  if (header.vocabulary < 1 || header.vocabulary > kMostTokens)
    refuse(fmt::format("says that its vocabulary has {} tokens, of 1 to {}", header.vocabulary,
                       kMostTokens));
  if (header.end_token < -1 || header.end_token >= header.vocabulary)
    refuse(fmt::format("token {} ends documents, of a vocabulary of {}", header.end_token,
                       header.vocabulary));
  if (header.count < 0 || header.shard >= header.shards)
    refuse(
        fmt::format("says {} tokens, shard {} of {}", header.count, header.shard, header.shards));
  return header;
}

}  // namespace

uint64_t token_header_sum(std::span<const uint8_t> file) {
  return XXH64(file.data(), kHeaderSum, 0);
}

TokenFile::TokenFile(FileBytes bytes) : bytes_(std::move(bytes)) {
  HeaderBytes head{};
  bytes_.read(
      0, std::span(head).first(static_cast<size_t>(std::min(bytes_.size(), kTokenHeaderBytes))));
  if (!std::ranges::equal(std::span(head).first(kTokenMagic.size()), kTokenMagic,
                          [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }))
    throw BadFile(
        "{}: is no token file: it does not begin with TUTTITOK; {}, or make a token file of the "
        "text with 'tutti data tokenize'",
        name(), found_instead(bytes_));
  if (bytes_.size() < kTokenHeaderBytes)
    throw BadFile("{}: has {} bytes, fewer than the header of a token file: {}", name(),
                  bytes_.size(), kAnew);
  header_ = parse_header(head, name());
  const int64_t stored = bytes_.size() - kTokenHeaderBytes;
  if (header_.count != stored / header_.token_bytes || stored % header_.token_bytes != 0)
    throw BadFile(
        "{}: its header says {} tokens of {} bytes, and {} bytes follow: it was cut off or written "
        "over; copy it again, or {}",
        name(), header_.count, header_.token_bytes, stored, kAnew);
}

void TokenFile::read(int64_t first, std::span<int32_t> out) const {
  CHECK(first >= 0 && first + std::ssize(out) <= size(), "tokens {} + {} of {}", first, out.size(),
        size());
  const int64_t at = kTokenHeaderBytes + first * header_.token_bytes;
  if (header_.token_bytes == 4) {
    bytes_.read(at, {reinterpret_cast<uint8_t*>(out.data()), out.size_bytes()});
  } else {
    // The 16-bit numbers lie in the second half of the 32-bit output.
    auto* narrow = reinterpret_cast<uint8_t*>(out.data()) + out.size_bytes() / 2;
    bytes_.read(at, {narrow, out.size_bytes() / 2});
    for (size_t i = 0; i < out.size(); ++i) out[i] = number_at<uint16_t>(narrow + 2 * i);
  }
  const auto beyond = std::ranges::find_if(
      out, [&](int32_t token) { return token < 0 || token >= header_.vocabulary; });
  if (beyond != out.end())
    throw BadFile(
        "{}: token number {} is {}, and the vocabulary has {}: the file is damaged; copy it again, "
        "or {}",
        name(), first + (beyond - out.begin()), *beyond, header_.vocabulary, kAnew);
}

void TokenFile::verify() const {
  ContentHash hash;
  bytes_.walk(kTokenHeaderBytes, [&](auto block, int64_t) { hash.add(block); });
  if (hash.value() != header_.checksum)
    throw BadFile("{}: the checksum of its tokens does not fit: copy it again, or {}", name(),
                  kAnew);
  std::vector<int32_t> tokens;
  for (int64_t at = 0; at < size(); at += std::ssize(tokens)) {
    tokens.resize(static_cast<size_t>(std::min<int64_t>(size() - at, 1 << 18)));
    read(at, tokens);
  }
}

TokenWriter::TokenWriter(std::filesystem::path path, const TokenHeader& header)
    : path_(std::move(path)), header_(header) {
  CHECK(header.vocabulary > 0 && header.token_bytes >= token_bytes_of(header.vocabulary),
        "{} bytes of a token for a vocabulary of {}", header.token_bytes, header.vocabulary);
  header_.count = 0;
  errno = 0;
  file_ = output_stream(path_);
  file_.write(std::string(kTokenHeaderBytes, '\0').data(), kTokenHeaderBytes);
  check();
}

void TokenWriter::check() {
  if (!file_) throw IoError(fmt::format("{}: cannot write: {}", path_.string(), file_error(errno)));
}

void TokenWriter::write(std::span<const int32_t> tokens) {
  block_.resize(tokens.size() * header_.token_bytes);
  char* to = block_.data();
  for (const int32_t token : tokens) {
    CHECK(token >= 0 && token < header_.vocabulary, "token {} of {}", token, header_.vocabulary);
    const auto narrow = static_cast<uint16_t>(token);
    std::memcpy(to, header_.token_bytes == 2 ? static_cast<const void*>(&narrow) : &token,
                header_.token_bytes);
    to += header_.token_bytes;
  }
  hash_.add(block_);
  file_.write(block_.data(), std::ssize(block_));
  header_.count += std::ssize(tokens);
  check();
}

void TokenWriter::close(int64_t shards) {
  header_.checksum = hash_.value();
  header_.shards = shards;
  const HeaderBytes head = header_bytes(header_);
  file_.seekp(0);
  file_.write(reinterpret_cast<const char*>(head.data()), std::ssize(head));
  file_.close();
  check();
}

}  // namespace tutti::data
