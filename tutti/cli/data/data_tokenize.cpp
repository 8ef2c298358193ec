#include "tutti/cli/data/data_verbs.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/shell.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/job/launch.h"
#include "tutti/data/text/token_file.h"
#include "tutti/data/text/tokenize.h"

namespace tutti::cli {
namespace {

struct TokenizeVerb {
  std::vector<std::string> inputs;
  std::string to, files, tokenizer = "bpe";
  int threads = 0;
  data::TokenizeSpec spec;
};

int run_tokenize(const TokenizeVerb& verb) {
  data::TokenizeSpec spec = verb.spec;
  if (verb.tokenizer == "gpt2" && verb.files.empty())
    throw ConfigError(
        "--tokenizer gpt2 needs --files DIR, the folder with GPT-2's vocab.json and merges.txt");
  if (!verb.files.empty() && (verb.tokenizer == "bytes" || verb.tokenizer == "characters"))
    throw ConfigError(fmt::format(
        "--files takes the tokenizer of {}, and --tokenizer {} asks for another: give one of them",
        verb.files, verb.tokenizer));
  spec.inputs.assign(verb.inputs.begin(), verb.inputs.end());
  spec.to = verb.to;
  spec.files = verb.files;
  spec.kind = verb.tokenizer;
  spec.threads = choose_threads(verb.threads, 0, device::read_topology(), 1);
  const auto start = std::chrono::steady_clock::now();
  const data::Tokenized made = data::tokenize(spec);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  int64_t bytes = 0;
  for (const data::TokenizedPart& part : made.parts) {
    bytes += part.bytes;
    fmt::print("{}: {}: {} tokens of {} bytes, {:.3f} bytes a token, {} document{}, {} file{}\n",
               verb.to, part.part, part.tokens, part.bytes,
               static_cast<double>(part.bytes) / static_cast<double>(part.tokens), part.documents,
               part.documents == 1 ? "" : "s", part.shards, part.shards == 1 ? "" : "s");
  }
  fmt::print(
      "{}: a vocabulary of {} tokens ({}), in {:.2f} s, {:.1f} MB/s; to see a configuration "
      "that trains on it: tutti data inspect {}\n",
      verb.to, made.vocabulary, made.kind, seconds, static_cast<double>(bytes) / seconds / 1e6,
      shell_word(verb.to));
  return 0;
}

}  // namespace

Verb data_tokenize_verb() {
  auto state = std::make_shared<TokenizeVerb>();  // shared: std::function must be copyable
  return {
      .name = "tokenize",
      .summary = "Write texts as token files, and the tokenizer that they are read with",
      .text =
          "Reads texts as one, in their order, and writes PART-00000.tokens and on, vocab.json "
          "and, of byte pairs, merges.txt, as GPT-2's files are. A tokenizer of byte pairs is "
          "trained on the training text with GPT-2's pieces of text; any bytes are encoded and "
          "come back. With --files an existing one is taken. What is written depends on the texts "
          "and the flags alone.",
      .arguments = {required_flag(
          Names::file, "INPUT", {}, "Text files, UTF-8; as bytes and byte pairs any files",
          &state->inputs,
          "data tokenize needs a text, for example: tutti data tokenize input.txt --to data/mine")},
      .flags = {required_flag(Names::folder, "--to", "DIR", "The folder that gets the files",
                              &state->to, "a folder is needed, for example: --to data/mine"),
                {.names = "--tokenizer",
                 .value = "KIND",
                 .help =
                     "What a token is: frequent strings of bytes, a byte, a character; or gpt2, "
                     "what --files says",
                 .bind = &state->tokenizer,
                 .choices = {"bpe", "bytes", "characters", "gpt2"}},
                excluding(named_flag(Names::folder, "--files", "DIR",
                                     "Take the tokenizer in this folder instead: GPT-2's "
                                     "vocab.json and merges.txt, or what an earlier call wrote. "
                                     "Empty: make one",
                                     &state->files),
                          {"--vocabulary"}),
                flag("--vocabulary", "N",
                     "Tokens of a trained vocabulary at most, with the 256 bytes and the end "
                     "token (GPT-2: 50257)",
                     &state->spec.vocabulary, {257, data::kMostTokens}),
                choice_flag("--part", "What the texts are for", &state->spec.part,
                            {"train", "validation", "test"}),
                flag("--validation", "SHARE",
                     "Share of the texts, from their end, that becomes the validation part",
                     &state->spec.validation, {0, 0.99}),
                flag("--separator", "TEXT",
                     "A word that stands between documents, such as <|endoftext|>. Files are "
                     "documents in any case. Empty: nothing does",
                     &state->spec.separator),
                flag("--shard", "N", "Tokens of a file", &state->spec.shard_tokens, {1}),
                flag("--threads", "N", "Threads; the files do not depend on them. 0: all cores",
                     &state->threads, {0})},
      .examples =
          {{"tutti data tokenize input.txt --to data/mine --vocabulary 1024 --validation 0.1",
            "Train byte pairs on the first 90 % of a text and write both parts"},
           {"tutti data tokenize *.txt --to data/web --tokenizer gpt2 --files gpt2",
            "With GPT-2's own vocabulary"}},
      .see_also = {"tutti data inspect", "docs/samples.md"},
      .run = [state] { return run_tokenize(*state); }};
}

}  // namespace tutti::cli
