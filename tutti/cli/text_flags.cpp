#include "tutti/cli/text_flags.h"

namespace tutti {

std::vector<Flag> text_flags(data::SentenceSpec& text, data::SequenceSpec& pairs) {
  return {{.names = "--words",
           .value = "N",
           .help = "Nouns of the language; it has half as many adjectives, and as many verbs",
           .bind = &text.words,
           .least = 2,
           .greatest = 1000000000,
           .only_for = {"text"}},
          {.names = "--task",
           .help = "What is to be made from a sequence: itself, turned round, sorted",
           .bind = &pairs.task,
           .choices = {"copy", "reverse", "sort"},
           .only_for = {"token-pairs"}},
          {.names = "--symbols",
           .value = "N",
           .help = "Tokens of the sequences, and one more that begins them",
           .bind = &pairs.symbols,
           .least = 2,
           .greatest = 1000000,
           .only_for = {"token-pairs"}},
          {.names = "--longest",
           .value = "N",
           .help = "Tokens of the longest sequence; all lengths up to it are as frequent",
           .bind = &pairs.longest,
           .least = 1,
           .greatest = 1000000,
           .only_for = {"token-pairs"}}};
}

}  // namespace tutti
