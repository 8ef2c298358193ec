#include "tutti/data/text/text_source.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/text/token_file.h"
#include "tutti/data/text/utf8.h"

namespace tutti::data {
namespace fs = std::filesystem;

FileBytes open_text(const fs::path& path) {
  FileBytes file = FileBytes::open(path);
  switch (first_bytes_of(file).content) {
    case Content::lfs_pointer:
    case Content::annex_pointer:
    case Content::dvc_pointer:
    case Content::gzip:
    case Content::bzip2:
    case Content::xz:
    case Content::zstd:
    case Content::lz4:
    case Content::seven_zip:
    case Content::rar:
    case Content::zip:
    case Content::npz:
    case Content::torch_zip:
    case Content::tar:
      throw BadFile("{}: expected a text, which is read by position; {}", file.name(),
                    found_instead(file));
    default: break;
  }
  std::array<uint8_t, 8> head{};
  const auto known = static_cast<size_t>(std::min<int64_t>(file.size(), head.size()));
  file.read(0, std::span(head).first(known));
  if (std::string_view(reinterpret_cast<const char*>(head.data()), known) == "TUTTITOK")
    throw BadFile("{}: is a token file: set data.dataset = \"tokens\"", file.name());
  return file;
}

FileBytes open_utf8(const fs::path& path) {
  FileBytes file = open_text(path);
  const Content content = first_bytes_of(file).content;
  if (!is_plain_text(content) && content != Content::html && content != Content::xml &&
      content != Content::empty)
    throw BadFile("{}: expected a text in UTF-8, {}", file.name(), found_instead(file));
  return file;
}

namespace {

/// Holds files one after the other, each with the number of its first element.
template <class File>
class InARow {
 public:
  void add(File file, int64_t size) {
    files_.push_back({std::move(file), size_});
    size_ += size;
  }
  int64_t size() const { return size_; }
  bool empty() const { return files_.empty(); }
  const File& front() const { return files_.front().file; }
  /// Calls look(file, first in it, how many, how many came before) for each file that holds some of
  /// the `count` elements from `first` on.
  template <class Look>
  void each(int64_t first, int64_t count, Look look) const {
    if (count == 0) return;
    auto place = std::prev(std::ranges::upper_bound(files_, first, {}, &Place::first));
    for (int64_t done = 0; done < count; ++place) {
      const int64_t end = std::next(place) == files_.end() ? size_ : std::next(place)->first;
      const int64_t here = std::min(end - first - done, count - done);
      if (here > 0) look(place->file, first + done - place->first, here, done);
      done += here;
    }
  }

 private:
  struct Place {
    File file;
    int64_t first;
  };
  std::vector<Place> files_;
  int64_t size_ = 0;
};

template <class T>
std::span<T> part_of(std::span<T> all, int64_t first, int64_t count) {
  return all.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

class ByteText final : public TextSource {
 public:
  explicit ByteText(const std::vector<fs::path>& files) : tokenizer_(byte_tokenizer(false)) {
    for (const fs::path& path : files) {
      const FileBytes file = open_text(path);
      files_.add(file, file.size());
    }
  }
  int64_t size() const override { return files_.size(); }
  int64_t vocabulary() const override { return 256; }
  int32_t end_token() const override { return -1; }
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  void read(int64_t first, std::span<int32_t> out) const override {
    std::vector<uint8_t> bytes(out.size());
    files_.each(first, std::ssize(out),
                [&](const FileBytes& file, int64_t at, int64_t count, int64_t before) {
                  file.read(at, part_of(std::span(bytes), before, count));
                });
    std::ranges::copy(bytes, out.begin());
  }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  InARow<FileBytes> files_;
};

/// Distance between characters whose places are kept.
constexpr int64_t kCharacterStride = 4096;

/// A file of UTF-8, and where every 4096th character begins.
struct WalkedText {
  FileBytes file;
  int64_t characters = 0;
  std::vector<int64_t> marks{};

  explicit WalkedText(const fs::path& path) : file(open_utf8(path)) {
    each_character(mark_bytes(file), [&](char32_t, int64_t at) {
      if (characters++ % kCharacterStride == 0) marks.push_back(at);
      return true;
    });
  }

  /// Calls look(code, start) for each character from byte `from` on, until it returns false.
  template <class Look>
  void each_character(int64_t from, Look look) const {
    constexpr int64_t kBlock = 1 << 16;
    std::string block;
    while (from < file.size()) {
      block.resize(static_cast<size_t>(std::min(kBlock, file.size() - from)));
      file.read(from, {reinterpret_cast<uint8_t*>(block.data()), block.size()});
      const bool last = from + std::ssize(block) == file.size();
      size_t at = 0;
      while (at < block.size() && (last || block.size() - at >= 4)) {
        const Utf8Character character = first_character(std::string_view(block).substr(at));
        if (character.bytes == 0)
          throw BadFile(
              "{}: byte {} (0x{:02x}) is no UTF-8: convert the text, or set data.tokenizer = "
              "\"bytes\"",
              file.name(), from + static_cast<int64_t>(at), static_cast<uint8_t>(block[at]));
        if (!look(character.code, from + static_cast<int64_t>(at))) return;
        at += character.bytes;
      }
      from += static_cast<int64_t>(at);
    }
  }

  /// Returns the start of the last marked character up to this one.
  int64_t mark_of(int64_t character) const {
    return marks[static_cast<size_t>(character / kCharacterStride)];
  }

  std::string read(int64_t first, int64_t count) const {
    const auto end = static_cast<size_t>((first + count - 1) / kCharacterStride + 1);
    const int64_t from = mark_of(first), to = end < marks.size() ? marks[end] : file.size();
    std::string text(static_cast<size_t>(to - from), '\0');
    file.read(from, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
    size_t at = 0;
    const auto pass_over = [&](int64_t characters) {
      while (at < text.size())
        if (!continues_character(text[at++]) && characters-- == 0) return --at;
      return at;
    };
    const size_t start = pass_over(first % kCharacterStride);
    return text.substr(start, pass_over(count) - start);
  }
};

class WalkedTexts final : public CharacterText {
 public:
  explicit WalkedTexts(const std::vector<fs::path>& paths) {
    for (const fs::path& path : paths) {
      auto text = std::make_unique<WalkedText>(path);
      const int64_t characters = text->characters;
      files_.add(std::move(text), characters);
    }
  }
  int64_t size() const override { return files_.size(); }
  int64_t vocabulary() const override { return tokenizer_->size(); }
  int32_t end_token() const override { return -1; }
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  void read(int64_t first, std::span<int32_t> out) const override {
    files_.each(first, std::ssize(out),
                [&](const auto& text, int64_t at, int64_t count, int64_t before) {
                  std::vector<int32_t> tokens;
                  tokens.reserve(static_cast<size_t>(count));
                  tokenizer_->encode(
                      text->read(at, count),
                      fmt::format("{}: characters {} to {}", text->file.name(), at, at + count - 1),
                      tokens);
                  if (std::ssize(tokens) != count)
                    throw BadFile("{}: was changed after it was opened", text->file.name());
                  std::ranges::copy(tokens, out.begin() + before);
                });
  }
  std::vector<char32_t> characters(int64_t first, int64_t count) const override {
    std::vector<bool> seen(0x110000, false);
    each(first, count, [&](const WalkedText&, char32_t code, int64_t) { seen[code] = true; });
    std::vector<char32_t> found;
    for (char32_t code = 0; code < seen.size(); ++code)
      if (seen[code]) found.push_back(code);
    return found;
  }
  TextPlace place_of(char32_t code, int64_t first, int64_t count) const override {
    std::optional<TextPlace> found;
    each(first, count, [&](const WalkedText& text, char32_t one, int64_t byte) {
      if (one == code && !found) found = {text.file.name(), byte};
    });
    CHECK(found, "U+{:04X} is not among {} characters", static_cast<uint32_t>(code), count);
    return *found;
  }
  void set_tokenizer(std::shared_ptr<const Tokenizer> tokenizer) override {
    tokenizer_ = std::move(tokenizer);
  }

 private:
  /// Calls look(file, code, its byte in it) for each of these characters.
  template <class Look>
  void each(int64_t first, int64_t count, Look look) const {
    files_.each(first, count, [&](const auto& text, int64_t at, int64_t left, int64_t) {
      int64_t number = at / kCharacterStride * kCharacterStride;
      text->each_character(text->mark_of(at), [&](char32_t code, int64_t byte) {
        if (number >= at) look(*text, code, byte);
        return ++number < at + left;
      });
    });
  }

  InARow<std::unique_ptr<WalkedText>> files_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // shared by the parts of a cut
};

class TokenShards final : public TextSource {
 public:
  explicit TokenShards(const std::vector<fs::path>& paths) {
    std::vector<TokenFile> shards;
    for (const fs::path& path : paths) shards.emplace_back(FileBytes::open(path));
    std::ranges::stable_sort(shards, {}, [](const TokenFile& f) { return f.header().shard; });
    const TokenHeader first = shards.front().header();
    for (size_t i = 0; i < shards.size(); ++i) {
      const TokenHeader& own = shards[i].header();
      if (own.vocabulary != first.vocabulary || own.end_token != first.end_token ||
          own.tokenizer != first.tokenizer || own.shards != first.shards)
        throw BadFile(
            "{} was written with another tokenizer or in another set than {}: name files that "
            "belong together, or make them anew with 'tutti data tokenize'",
            shards[i].name(), shards.front().name());
      if (own.shard != static_cast<int64_t>(i))
        throw BadFile("{} is shard {} of {}, and {} is {}: name all shards of one part, each once",
                      shards[i].name(), own.shard, own.shards,
                      own.shard < static_cast<int64_t>(i) ? own.shard : static_cast<int64_t>(i),
                      own.shard < static_cast<int64_t>(i) ? "there twice" : "missing");
    }
    if (std::ssize(shards) != first.shards)
      throw BadFile("{}: {} of {} shards are there: name all shards of one part",
                    shards.back().name(), shards.size(), first.shards);
    take_tokenizer(paths.front().parent_path(), shards.front());
    for (const TokenFile& shard : shards) shards_.add(shard, shard.size());
  }
  int64_t size() const override { return shards_.size(); }
  int64_t vocabulary() const override { return shards_.front().header().vocabulary; }
  int32_t end_token() const override { return shards_.front().header().end_token; }
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  uint64_t tokenizer_identity() const override {
    return tokenizer_ ? tokenizer_->identity() : shards_.front().header().tokenizer;
  }
  void read(int64_t first, std::span<int32_t> out) const override {
    shards_.each(first, std::ssize(out),
                 [&](const TokenFile& file, int64_t at, int64_t count, int64_t before) {
                   file.read(at, part_of(out, before, count));
                 });
  }

 private:
  void take_tokenizer(const fs::path& folder, const TokenFile& file) {
    if (!has_tokenizer(folder)) return;
    tokenizer_ = read_tokenizer(folder);
    const TokenHeader& header = file.header();
    if (tokenizer_->size() != header.vocabulary ||
        (header.tokenizer != 0 && header.tokenizer != tokenizer_->identity()))
      throw BadFile(
          "{}: was written with a vocabulary of {} tokens which is not that of {} ({} tokens): the "
          "files do not belong together; make them anew with 'tutti data tokenize'",
          file.name(), header.vocabulary, (folder / "vocab.json").string(), tokenizer_->size());
  }

  InARow<TokenFile> shards_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace

std::unique_ptr<TextSource> byte_text(const std::vector<fs::path>& files) {
  CHECK(!files.empty(), "a text needs a file");
  return std::make_unique<ByteText>(files);
}

std::unique_ptr<CharacterText> character_text(const std::vector<fs::path>& files) {
  return std::make_unique<WalkedTexts>(files);
}

std::unique_ptr<TextSource> token_shards(const std::vector<fs::path>& files) {
  CHECK(!files.empty(), "tokens need a file");
  return std::make_unique<TokenShards>(files);
}

}  // namespace tutti::data
