#include "tutti/data/format/molecules/selection.h"

#include <gtest/gtest.h>

#include "tutti/data/file_checks.h"

namespace tutti::data {
namespace {

/// Returns two chains of three residues with N, CA, CB; and a calcium ion.
Topology two_chains() {
  Topology topology{.file = "two.pdb"};
  for (const char* chain : {"A", "B"})
    for (const char* number : {"7", "8", "8A"})
      for (const char* name : {"N", "CA", "CB"})
        topology.atoms.push_back(
            {.name = name, .residue = "GLY", .residue_number = number, .chain = chain});
  topology.atoms.push_back({.name = "CA", .residue = "CA", .residue_number = "9", .chain = "B"});
  return topology;
}

std::vector<int64_t> chosen(const std::string& text) {
  return selected_atoms(two_chains(), parse_selection(text));
}
using Places = std::vector<int64_t>;

TEST(Selection, TakesAtomsThatMeetAllConditions) {
  EXPECT_EQ(chosen("CA"), (Places{1, 4, 7, 10, 13, 16}));
  EXPECT_EQ(chosen("CB+CA chain B"), (Places{10, 11, 13, 14, 16, 17}));
  EXPECT_EQ(chosen("CA residues 8"), (Places{4, 7, 13, 16}));
  EXPECT_EQ(chosen("CA residues 1-7+9-20 chain A+B"), (Places{1, 10}));
  EXPECT_EQ(chosen("any atoms 2-3+18"), (Places{2, 3, 18}));
  EXPECT_EQ(chosen("CA atoms 0-9 residues 8-8"), (Places{4, 7}));
}

TEST(Selection, SaysWhatNoAtomIs) {
  const auto refuse = [](const std::string& text, const std::vector<std::string>& words) {
    expect_config_error([&] { chosen(text); }, words);
  };
  refuse("CG", {"two.pdb", "none of its 19 atoms", "'CG'", "CA, CB, N"});
  refuse("CA chain C", {"two.pdb", "chain 'C'", "A, B"});
  refuse("CA residues 20-30", {"two.pdb", "from 7 to 9"});
  refuse("CA atoms 0", {"two.pdb", "counted from 0"});
}

TEST(Selection, RefusesWhatItCannotRead) {
  const auto refuse = [](const std::string& text, const std::string& word) {
    expect_config_error([&] { parse_selection(text); }, {text, word});
  };
  refuse("CA++CB", "'CA++CB'");
  refuse("CA residue 5", "'residue'");
  refuse("CA residues", "'residues'");
  refuse("CA residues 5-", "'5-'");
  refuse("CA residues 9-5", "'9-5'");
  refuse("CA residues x", "'x'");
  refuse("CA chain A chain B", "twice");
  refuse("CA atoms 99999999999999999999", "'99999999999999999999'");
}

}  // namespace
}  // namespace tutti::data
