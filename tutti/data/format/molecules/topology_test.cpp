#include "tutti/data/format/molecules/selection.h"

#include <gtest/gtest.h>

#include "tutti/data/file_checks.h"

namespace tutti::data {
namespace {

const std::string kPdb =
    "CRYST1   46.599   46.599   46.599  90.00  90.00  90.00 P 1           1\n"
    "MODEL        1\n"
    "ATOM      1  N   GLY A   1      -6.852  17.265  18.321  1.00  0.00           N\n"
    "ATOM      2  CA AGLY A   1      -7.036  17.642  19.273  0.50  0.00           C\r\n"
    "ATOM      3  CA BGLY A   1      -7.136  17.642  19.273  0.50  0.00           C\n"
    "ATOM      4  CA  ALA A  52A     -7.136  17.642  19.273  0.50  0.00           C\n"
    "HETATM    5 CA    CA B   1      -7.136  17.642  19.273  0.50  0.00          CA\n"
    "ENDMDL\n"
    "MODEL        2\n"
    "ATOM      1  N   GLY A   1      -6.852  17.265  18.321  1.00  0.00           N\n"
    "ENDMDL\n";
const std::string kGro =
    "a title, t= 0.0\n    3\n"
    "    1GLY      N    1   0.126   1.624   1.679\n"
    "    1GLY     CA    2   0.190   1.661   1.747\n"
    "    2ALA     CA    3   0.177   1.568   1.613\n"
    "   1.82060   1.82060   1.82060\n"
    "the next frame\n    3\n";
const std::string kPsf =
    "PSF EXT\n\n         1 !NTITLE\n REMARKS one\n\n       3 !NATOM\n"
    "         1 PROT     1        GLY      N        NH3     -0.300000       14.0070           0\n"
    "         2 PROT     1        GLY      CA       CT1      0.130000       12.0110           0\n"
    "         3 PROT     2        ALA      CA       CT1      0.130000       12.0110           0\n";
const std::string kParm7 =
    "%VERSION  VERSION_STAMP = V0001.000\n%FLAG POINTERS\n%FORMAT(10I8)\n"
    "       3      11     173     162     395     219     726     498       0       0\n"
    "    1850       2\n"
    "%FLAG ATOM_NAME\n%FORMAT(20a4)\nN   CA  CA  \n%FLAG CHARGE\n%FORMAT(5E16.8)\n  0.0\n"
    "%FLAG RESIDUE_LABEL\n%FORMAT(20a4)\nGLY ALA \n"
    "%FLAG RESIDUE_POINTER\n%FORMAT(10I8)\n       1       3\n";

std::string atoms_text(const Topology& topology) {
  std::string text;
  for (const Atom& atom : topology.atoms)
    text += fmt::format("{}{}/{}{}/{} ", atom.chain, atom.chain.empty() ? "" : ":", atom.residue,
                        atom.residue_number, atom.name);
  return text;
}

Topology topology_of_text(const ScratchDirectory& scratch, const std::string& name,
                          const std::string& text) {
  return read_topology(scratch.write(name, text));
}

TEST(Topology, AtomsOfEveryFormat) {
  const ScratchDirectory scratch;
  EXPECT_EQ(atoms_text(topology_of_text(scratch, "x.pdb", kPdb)),
            "A:/GLY1/N A:/GLY1/CA A:/ALA52A/CA B:/CA1/CA ");
  EXPECT_EQ(atoms_text(topology_of_text(scratch, "x.gro", kGro)), "/GLY1/N /GLY1/CA /ALA2/CA ");
  EXPECT_EQ(atoms_text(topology_of_text(scratch, "x.psf", kPsf)),
            "PROT:/GLY1/N PROT:/GLY1/CA PROT:/ALA2/CA ");
  EXPECT_EQ(atoms_text(topology_of_text(scratch, "x.prmtop", kParm7)),
            "/GLY1/N /GLY1/CA /ALA2/CA ");
}

// Covers short and wide columns, X-PLOR's and CHARMM's types, NAMD's words, segments without names.
TEST(Topology, AtomsOfEveryPsf) {
  const ScratchDirectory scratch;
  const auto atoms = [&](const std::string& flags, const std::string& lines) {
    return atoms_text(topology_of_text(
        scratch, "x.psf",
        flags + "\n\n       1 !NTITLE\n REMARKS one\n\n       2 !NATOM\n" + lines));
  };
  EXPECT_EQ(atoms("PSF",
                  "       1      1    GLY  N    NH3   -0.300000       14.0070           0\n"
                  "       2      2    ALA  CA   CT1    0.070000       12.0110           0\n"),
            "/GLY1/N /ALA2/CA ");
  EXPECT_EQ(atoms("PSF CMAP",
                  "       1 A    1    GLY  N      56  -0.300000       14.0070           0\n"
                  "       2 A    52A  ALA  CA     22   0.070000       12.0110           0\n"),
            "A:/GLY1/N A:/ALA52A/CA ");
  EXPECT_EQ(
      atoms(
          "PSF EXT CMAP CHEQ XPLOR",
          "         1          1        GLY      N        NH3     -0.300000       14.0070      0\n"
          "         2 PROTEIN1 12345678 ALANINES CA       CT1      0.130000       12.0110      "
          "0\n"),
      "/GLY1/N PROTEIN1:/ALANINES12345678/CA ");
  EXPECT_EQ(atoms("PSF NAMD", "1 SEG1 1 GLY N NH3 -0.3 14.007 0\n2 2 ALA CA CT1 0.07 12.011 0\n"),
            "SEG1:/GLY1/N /ALA2/CA ");
  EXPECT_EQ(atoms("PSF", "1 2 1 GLY N NH3 -0.3 14.007 0\n2 2 2 ALA CA CT1 0.07 12.011 0\n"),
            "2:/GLY1/N 2:/ALA2/CA ");
}

// A file may continue after its END, or stop before it.
TEST(Topology, PdbsEnds) {
  const ScratchDirectory scratch;
  const std::string first =
      "ATOM      1  N   GLY A   1      -6.852  17.265  18.321  1.00  0.00           N\n"
      "ATOM      2  CA  GLY A   1      -7.036  17.642  19.273  0.50  0.00           C\n";
  const std::string other =
      "ATOM      1  N   ALA A   1      -6.852  17.265  18.321  1.00  0.00           N\n";
  const auto open = [&](const std::string& text) {
    return atoms_text(topology_of_text(scratch, "x.pdb", text));
  };
  const std::string expected = "A:/GLY1/N A:/GLY1/CA ";
  EXPECT_EQ(open(first), expected);
  EXPECT_EQ(open(first + "END\n" + first + "END\n"), expected) << "frames";
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { open(text); }, parts);
  };
  refuse(first + "END\n" + other, {"/x.pdb:4", "behind the end", "split"});
  refuse(first + "END\n" + first + other, {"/x.pdb:6", "behind the end"});
  refuse("MODEL        1\n" + first, {"/x.pdb:3", "ENDMDL", "fetch it again"});
  refuse(first.substr(0, first.size() - 40), {"/x.pdb:2", "ends in the middle of a line"});
}

TEST(Topology, AtomsByName) {
  const ScratchDirectory scratch;
  const Topology topology = topology_of_text(scratch, "x.pdb", kPdb);
  EXPECT_EQ(selected_atoms(topology, parse_selection("CA")),
            (std::vector<int64_t>{1, 2}));  // not the calcium
  expect_config_error([&] { selected_atoms(topology, parse_selection("CB")); },
                      {"/x.pdb", "none of its 4 atoms", "'CB'", "CA, N"});
}

TEST(Topology, SaysWhatIsWrong) {
  const ScratchDirectory scratch;
  const auto refuse = [&](const std::string& name, const std::string& text,
                          const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { topology_of_text(scratch, name, text); }, parts);
  };
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return text.replace(at, from.size(), to);
  };
  refuse("x.txt", "anything", {"/x.txt", "expected a topology"});
  refuse("x.pdb", "REMARK\n", {"/x.pdb:1", "no line ATOM"});
  refuse("x.pdb", "ATOM      1  N\n", {"/x.pdb:1", "columns 13 to 16"});
  refuse("x.gro", "title\nthree\n", {"/x.gro:2", "number of atoms"});
  refuse("x.gro", changed(kGro, "    3\n", "    300000000\n"), {"/x.gro:2", "300000000 atoms"});
  refuse("x.gro", changed(kGro, "    3\n", "    4\n"), {"/x.gro:6", "fewer atoms"});
  refuse("x.gro", kGro.substr(0, kGro.find("   1.82060")), {"/x.gro:5", "the unit cell"});
  refuse("x.gro", kGro.substr(0, kGro.rfind("    3\n")) + "    5\n",
         {"/x.gro:8", "behind the end"});
  refuse("x.pdb", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
         {"/x.pdb", "expected a topology", "git lfs pull"});
  refuse("x.psf", changed(kPsf, "3 !NATOM", "4 !NATOM"), {"/x.psf:9", "4 atoms, found 3"});
  refuse("x.psf", changed(kPsf, "3 PROT     2", "3 PROT     A"), {"/x.psf:9", "expected an atom"});
  refuse("x.psf", "PSF\n", {"/x.psf:1", "!NATOM"});
  refuse("x.parm7", changed(kParm7, "%FLAG ATOM_NAME", "%FLAG CHARGES"), {"/x.parm7", "ATOM_NAME"});
  refuse("x.parm7", changed(kParm7, "CA  CA", "CA    "), {"/x.parm7", "3 atoms in POINTERS, 2 in"});
  refuse("x.parm7", changed(kParm7, "1       3\n", "1       9\n"), {"/x.parm7", "residue 1"});
  refuse("x.parm7", changed(kParm7, "(20a4)", "20a4"), {"/x.parm7:7", "format"});
}

#ifdef TUTTI_TEST_DATA
TEST(Topology, RealFiles) {
  const std::filesystem::path data = std::filesystem::path(TUTTI_TEST_DATA) / "md";
  struct Expected {
    std::string file;
    size_t atoms, alpha_carbons;
  };
  for (const Expected& expected :
       std::vector<Expected>{{"alanine_dipeptide/ala2.pdb", 22, 1},
                             {"bpti_ca/bpti_ca.pdb", 58, 58},
                             {"mdcath_2hbaA00/2hbaA00.pdb", 834, 52},
                             {"myoglobin_heating/myo_noh_1dwr_tip4p.pdb", 2484, 153},
                             {"folded_pdbs/2JOF.pdb", 284, 20},
                             {"dpdp_beta_peptide/DPDP.parm7", 332, 20}}) {
    const Topology topology = read_topology(data / expected.file);
    EXPECT_EQ(topology.atoms.size(), expected.atoms) << expected.file;
    EXPECT_EQ(selected_atoms(topology, parse_selection("CA")).size(), expected.alpha_carbons)
        << expected.file;
  }
}
#endif

}  // namespace
}  // namespace tutti::data
