#include "tutti/data/transform/derived_field.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/data/file_checks.h"
#include "tutti/data/format/molecules/trajectory_files.h"
#include "tutti/data/open/open.h"
#include "tutti/data/transform/sample_writer.h"

namespace tutti::data {
namespace {

/// Returns a PDB with so many atoms, every third of which is a CA.
std::string pdb_text(int64_t atoms) {
  std::string text;
  for (int64_t a = 0; a < atoms; ++a)
    text += fmt::format("ATOM  {:5}  {:<3} GLY A{:4}      11.000  12.000  13.000\n", a + 1,
                        a % 3 == 1 ? "CA" : "N", a / 3 + 1);
  return text;
}

Derivation derivation_of(const std::string& text) { return parse_steps(text).derivation; }

TEST(DerivedField, SelectsAndFindsContacts) {
  const ScratchDirectory scratch;
  const std::string pdb = scratch.write("p.pdb", pdb_text(6)).string();
  const Field stored{.name = "x", .element = ElementType::f64, .shape = {6, 3}};
  std::vector<double> points(18);
  for (size_t i = 0; i < points.size(); ++i) points[i] = static_cast<double>(i * i);
  std::vector<float> memory;

  const DerivedField selected(stored, derivation_of("x: select CA of " + pdb));
  EXPECT_EQ(selected.field().to_string(), "f32 x 2x3");
  const float* chosen = selected.make(points.data(), memory);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(chosen[i], static_cast<float>(points[(i < 3 ? 3 : 9) + i]));

  // Atoms 1 and 4 lie (135, 153, 171) apart.
  const float apart = std::sqrt(135.0f * 135 + 153.0f * 153 + 171.0f * 171);
  for (const bool near : {false, true}) {
    const DerivedField contacts(stored,
                                derivation_of(fmt::format("x: select CA of {}, contacts {}", pdb,
                                                          near ? apart + 0.1f : apart - 0.1f)));
    EXPECT_EQ(contacts.field().to_string(), "f32 x 1x2x2");
    const float* map = contacts.make(points.data(), memory);
    EXPECT_EQ(std::vector<float>(map, map + 4),
              (std::vector<float>{1, near ? 1.0f : 0.0f, near ? 1.0f : 0.0f, 1}));
  }
  EXPECT_EQ(derived_field(stored, derivation_of("x: contacts 8")).shape, (Shape{1, 6, 6}));
  EXPECT_EQ(derived_field(stored, {}).to_string(), stored.to_string());
}

TEST(DerivedField, SaysWhatDoesNotFit) {
  const ScratchDirectory scratch;
  const std::string pdb = scratch.write("p.pdb", pdb_text(6)).string();
  const Field seven{.name = "x", .element = ElementType::f32, .shape = {7, 3}};
  const Field six{.name = "x", .element = ElementType::f32, .shape = {6, 3}};
  const auto refuse = [](const Field& field, const std::string& steps,
                         const std::vector<std::string>& parts) {
    expect_config_error([&] { derived_field(field, derivation_of(steps)); }, parts);
  };
  refuse(seven, "x: select CA of " + pdb, {"'x' has 7 atoms", "/p.pdb has 6"});
  refuse(six, "x: select CB of " + pdb, {"/p.pdb", "'CB'"});
  refuse({.name = "image", .shape = {3, 8, 8}}, "image: contacts 8", {"'image'", "[atoms, 3]"});
  refuse(seven, "x: select CA of /nowhere/p.pdb", {"/nowhere/p.pdb"});
}

// A trajectory becomes a minibatch: the map is input and target, both mirrored the same way.
TEST(DerivedField, ContactMapsOfATrajectoryInABatch) {
  const ScratchDirectory scratch;
  const auto xyz = chain_coordinates(2, 30);
  scratch.write("run.xtc", xtc_bytes(xyz, 30));
  const std::string pdb = scratch.write("p.pdb", pdb_text(30)).string();
  const auto set =
      open_dataset({.name = "arrays",
                    .dir = scratch.path(),
                    .arrays = {.train = {"run.xtc"}, .fields = {"x: from coordinates"}}});
  const std::vector steps = {
      parse_steps("x: select CA of " + pdb + ", contacts 8, crop 8 8, add 1")};
  EXPECT_EQ(shape_after(set->fields()[0], steps[0]), (Shape{1, 8, 8}));
  const TensorDesc desc{DType::f32, {2, 1, 8, 8}, {}};
  const std::vector<BatchField> fields = {{"x", desc, BatchRows{.dim = 2, .first = 0, .last = 4}},
                                          {"x", desc}};
  const SampleWriter writer(*set, fields, steps, 1);
  std::vector<float> input(128), target(128);
  const std::vector<void*> batch = {input.data(), target.data()};
  Sample sample(set->fields());
  for (int64_t n = 0; n < 2; ++n) {
    set->read(n, sample);
    writer.write(sample, std::nullopt, n, n, batch);
  }
  std::vector<FieldRows> rows;
  writer.wanted_rows(std::nullopt, 0, rows);
  EXPECT_EQ(rows[0].axis, -1);  // rows of the map need all atoms
  int contacts = 0;
  for (size_t n = 0; n < 2; ++n)
    for (size_t y = 0; y < 8; ++y)
      for (size_t x = 0; x < 8; ++x) {
        const float* a = &xyz[(n * 30 + 3 * (y + 1) + 1) * 3];  // the crop drops one on each side
        const float* b = &xyz[(n * 30 + 3 * (x + 1) + 1) * 3];
        const bool near = std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]) <= 8;
        contacts += near;
        ASSERT_EQ(target[(n * 8 + y) * 8 + x], near ? 2 : 1) << n << ' ' << y << ' ' << x;
        if (y < 4) {
          ASSERT_EQ(input[(n * 8 + y) * 8 + x], near ? 2 : 1);
        }
      }
  EXPECT_GT(contacts, 20);
  EXPECT_LT(contacts, 100);
}

#ifdef TUTTI_TEST_DATA
// Expects the known fraction of contacts below 8 Angstrom between residues three or more apart in
// these trajectories.
TEST(DerivedField, ContactsOfRealProteins) {
  struct Expected {
    std::string trajectory, topology;
    double least, most;
  };
  for (const Expected& expected : std::vector<Expected>{
           {"bpti_ca/bpti_mini.dcd", "bpti_ca/bpti_ca.pdb", 0.085, 0.101},
           {"dpdp_beta_peptide/DPDP.nc", "dpdp_beta_peptide/DPDP.parm7", 0.229, 0.275},
           {"mdcath_2hbaA00/2hbaA00_320_0.xtc", "mdcath_2hbaA00/2hbaA00.pdb", 0.088, 0.113},
           {"myoglobin_heating/myo_noh_300.xtc", "myoglobin_heating/myo_noh_1dwr_tip4p.pdb", 0.0316,
            0.0345}}) {
    const std::string folder = std::string(TUTTI_TEST_DATA) + "/md/";
    const auto set = open_dataset(
        {.name = "arrays",
         .dir = folder,
         .arrays = {.train = {expected.trajectory}, .fields = {"x: from coordinates"}}});
    const DerivedField maps(set->fields()[0], derivation_of("x: select CA of " + folder +
                                                            expected.topology + ", contacts 8"));
    const auto residues = static_cast<size_t>(maps.field().shape[1]);
    Sample sample(set->fields());
    std::vector<float> memory;
    double least = 1, most = 0;
    for (int64_t i = 0; i < set->size(); ++i) {
      set->read(i, sample);
      const float* map = maps.make(sample.at(0), memory);
      double contacts = 0, pairs = 0;
      for (size_t a = 0; a < residues; ++a)
        for (size_t b = a + 3; b < residues; ++b, ++pairs) contacts += map[a * residues + b];
      least = std::min(least, contacts / pairs);
      most = std::max(most, contacts / pairs);
    }
    EXPECT_NEAR(least, expected.least, 0.00051) << expected.trajectory;
    EXPECT_NEAR(most, expected.most, 0.00051) << expected.trajectory;
  }
}
#endif

}  // namespace
}  // namespace tutti::data
