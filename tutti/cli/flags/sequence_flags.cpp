#include "tutti/cli/flags/sequence_flags.h"

namespace tutti::cli {

std::vector<Flag> sequence_flags(const SequenceSpecs& specs) {
  std::vector<Flag> all;
  const auto add = [&](const std::vector<std::string>& sets, std::vector<Flag> flags) {
    all = joined(std::move(all), only_for(sets, std::move(flags)));
  };
  add({"clicks"}, {{"--vocabulary", "N",
                    "Categories of the column that has most of them; the one with fewest has 4",
                    &specs.clicks.vocabulary, 4, 1000000000}});
  add({"text"},
      {{"--words", "N", "Nouns of the language; it has half as many adjectives, and as many verbs",
        &specs.text.words, 2, 1000000000}});
  add({"token-pairs"},
      {{.names = "--task",
        .help = "What is to be made from a sequence: itself, turned round, sorted",
        .bind = &specs.pairs.task,
        .choices = {"copy", "reverse", "sort"}},
       {"--symbols", "N", "Tokens of the sequences, and one more that begins them",
        &specs.pairs.symbols, 2, 1000000},
       {"--longest", "N", "Tokens of the longest sequence; all lengths up to it are as frequent",
        &specs.pairs.longest, 1, 1000000}});
  add({"protein"},
      {{"--residues", "N", "Length of the chain", &specs.chain.residues, generate::kFewestResidues,
        999},
       {"--stride", "N", "Steps of Langevin dynamics from frame to frame", &specs.chain.stride, 1,
        1000000},
       {"--temperature", "X",
        "Temperature in the model's unit; the default is near that of folding",
        &specs.chain.temperature, 0.01, 2},
       {"--swing", "X",
        "Share of the temperature by which it rises and falls, every 200 frames; 0: constant",
        &specs.chain.swing, 0, 0.9}});
  add({"vibrations"},
      {{"--masses", "N", "Masses of the chain, each with a sensor and a spring below it",
        &specs.vibrations.masses, 2, 64},
       {"--samples", "N",
        "Samples of the longest record, a multiple of 8; the shortest has half of them",
        &specs.vibrations.samples, 32, 65536},
       {"--sensor-noise", "X",
        "Standard deviation of the sensors' noise, of a record's largest acceleration",
        &specs.vibrations.noise, 0, 100}});
  return all;
}

}  // namespace tutti::cli
