// Messages say what to do with a file of another format. The tests do it, if the program is
// installed, and read the result.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>

#include "tutti/base/expect_text.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/format/array/array_checks.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

/// Runs a command in a folder and says whether it succeeded.
bool run_in(const fs::path& folder, const std::string& command) {
  return std::system(
             fmt::format("cd '{}' && ({}) > said 2>&1", folder.string(), command).c_str()) == 0;
}

std::string with_name(std::string command, const std::string& name, const std::string& file) {
  for (size_t at = command.find(name); at != command.npos;
       at = command.find(name, at + file.size()))
    command.replace(at, name.size(), file);
  return command;
}

std::string remedy_for(const fs::path& file) {
  return first_bytes_of(FileBytes::open(file)).remedy;
}

TEST(Remedies, CommandsThatUnpack) {
  // The first command packs a file; the message names the second one.
  const std::pair<std::string, std::string> rows[] = {
      {"gzip -c words > packed", "gzip -dc FILE > NEW"},
      {"bzip2 -c words > packed", "bzip2 -dc FILE > NEW"},
      {"xz -c words > packed", "xz -dc FILE > NEW"},
      {"zstd -qc words > packed", "zstd -dc FILE > NEW"},
      {"lz4 -qc words > packed", "lz4 -dc FILE > NEW"},
      {"iconv -f UTF-8 -t UTF-16 words > packed", "iconv -f UTF-16 -t UTF-8 FILE > NEW"},
      {"iconv -f UTF-8 -t UTF-32 words > packed", "iconv -f UTF-32 -t UTF-8 FILE > NEW"},
      {"mkdir in && cp words in/NEW && tar -C in -cf packed NEW", "tar -xf FILE"},
      {"mkdir in && cp words in/NEW && tar -C in -czf packed NEW", "tar -xzf"},
      {"unzip -v && mkdir in && cp words in/NEW && cd in && zip -q - NEW > ../packed",
       "unzip FILE"},
      {"mkdir in && cp words in/NEW && cd in && 7z a ../x.7z NEW && mv ../x.7z ../packed",
       "7z x FILE"},
  };
  int tried = 0;
  for (const auto& [pack, remedy] : rows) {
    const ScratchDirectory scratch;
    scratch.write("words", bytes_of("some words\n"));
    if (!run_in(scratch.path(), pack)) continue;  // not installed
    const std::string message = remedy_for(scratch.path() / "packed");
    ASSERT_TRUE(has_text(message, remedy));
    const bool named = remedy.find("FILE") != remedy.npos;
    const std::string command = with_name(named ? remedy : remedy + " FILE", "FILE", "packed");
    EXPECT_TRUE(run_in(scratch.path(), command)) << command;
    EXPECT_EQ(read_all(scratch.path() / "NEW"), bytes_of("some words\n")) << command;
    ++tried;
  }
  EXPECT_GE(tried, 3);  // gzip and tar exist everywhere
}

/// Returns the numbers of a file's only array as floats.
std::vector<float> numbers_in(const fs::path& path) {
  const ArrayFile file = open_array_file(path);
  std::vector<float> values(static_cast<size_t>(file.arrays()[0].elements()));
  file.read_f32(0, Slab::all(file.arrays()[0]), values.data());
  return values;
}

/// A file, the tested part of its remedy, and a shell command for it; `needs` succeeds if the
/// required programs are installed.
struct Conversion {
  std::string needs, file, content, message, command, made;
};

std::string python(const std::string& code) { return "python3 -c \"" + code + "\""; }

const std::string kAtoms =
    "ATOM      1  O   HOH A   1       1.000   2.000   3.000  1.00  0.00           O  \n"
    "ATOM      2  H1  HOH A   1       2.000   2.000   3.000  1.00  0.00           H  \n";

/// mdtraj and MDAnalysis write files that are read here.
std::vector<Conversion> trajectories() {
  const std::string dump =
      "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n2\nITEM: BOX BOUNDS pp pp pp\n0 9\n0 9\n0 9\n"
      "ITEM: ATOMS id type x y z\n1 1 1.0 2.0 3.0\n2 1 2.0 2.0 3.0\n";
  const std::string mdcrd = "title\n   1.000   2.000   3.000   2.000   2.000   3.000\n";
  const std::string gro =
      "water\n    2\n    1HOH      O    1   0.100   0.200   0.300\n"
      "    1HOH     H1    2   0.200   0.200   0.300\n   1.00000   1.00000   1.00000\n";
  const std::string xyz = "2\nwater\n O 1.0 2.0 3.0\n H 2.0 2.0 3.0\n";
  const std::string mdtraj = python("import mdtraj"), analysis = python("import MDAnalysis");
  return {
      {analysis, "f.xyz", xyz, "MDAnalysis.Universe(FILE).atoms.write('NEW.dcd', frames='all')",
       "import MDAnalysis; CODE", "NEW.dcd"},
      {analysis, "f.dump", dump,
       "MDAnalysis.Universe(FILE, format='LAMMPSDUMP').atoms.write('NEW.dcd', frames='all')",
       "import MDAnalysis; CODE", "NEW.dcd"},
      {mdtraj, "f.mdcrd", mdcrd, "mdtraj.load(FILE, top=TOPOLOGY).save('NEW.dcd')",
       "import mdtraj; CODE", "NEW.dcd"},
      {mdtraj, "f.gro", gro, "mdtraj.load(FILE).save('NEW.dcd')", "import mdtraj; CODE", "NEW.dcd"},
      {"mdconvert -h", "f.pdb", "MODEL        1\n" + kAtoms + "ENDMDL\n",
       "mdconvert FILE -o NEW.dcd", "", "NEW.dcd"}};
}

TEST(Remedies, TrajectoriesOfText) {
  for (const Conversion& one : trajectories()) {
    const ScratchDirectory scratch;
    scratch.write("top.pdb", bytes_of(kAtoms + "END\n"));
    const std::string message = remedy_for(scratch.write(one.file, bytes_of(one.content)));
    ASSERT_TRUE(has_text(message, one.message));
    if (!run_in(scratch.path(), one.needs)) continue;
    const std::string file = one.command.empty() ? one.file : "'" + one.file + "'";
    std::string code = with_name(with_name(one.message, "FILE", file), "TOPOLOGY", "'top.pdb'");
    if (!one.command.empty()) code = python(with_name(one.command, "CODE", code));
    EXPECT_TRUE(run_in(scratch.path(), code)) << code;
    const ArrayFile made = open_array_file(scratch.path() / one.made);
    const std::vector<float> first = slab_of<float>(made, "coordinates", {{0, 0, 0}, {1, 1, 3}});
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(first[static_cast<size_t>(i)], 1 + i, 1e-3) << code;
  }
}

TEST(Remedies, FilesOfPythonsPrograms) {
  struct Row {
    std::string needs, make, message, convert;
  };
  const Row rows[] = {
      {"numpy, pickle", "pickle.dump(numpy.arange(3.), open('FILE', 'wb'))",
       "load it in Python and save arrays with numpy.save",
       "numpy.save('NEW.npy', pickle.load(open('FILE', 'rb')))"},
      {"numpy, torch", "torch.save(torch.arange(3.), 'FILE')",
       "torch.load(FILE, map_location='cpu')",
       "numpy.save('NEW.npy', torch.load('FILE', map_location='cpu').numpy())"},
      {"numpy, scipy.io", "scipy.io.savemat('FILE', {'x': numpy.arange(3.)}, appendmat=False)",
       "read it with scipy.io.loadmat and save it with numpy.savez",
       "numpy.save('NEW.npy', scipy.io.loadmat('FILE', appendmat=False)['x'].ravel())"},
      {"numpy, pandas, pyarrow", "pandas.DataFrame({'x': numpy.arange(3.)}).to_parquet('FILE')",
       "read it with pandas.read_parquet and save it with to_csv or numpy.save",
       "numpy.save('NEW.npy', pandas.read_parquet('FILE')['x'])"},
      {"numpy, pandas, pyarrow", "pandas.DataFrame({'x': numpy.arange(3.)}).to_feather('FILE')",
       "read it with pandas.read_feather and save it with to_csv or numpy.save",
       "numpy.save('NEW.npy', pandas.read_feather('FILE')['x'])"},
  };
  for (const Row& row : rows) {
    const ScratchDirectory scratch;
    const std::string import = "import " + row.needs + "; ";
    if (!run_in(scratch.path(), python(import + row.make))) continue;  // not installed
    const std::string message = remedy_for(scratch.path() / "FILE");
    EXPECT_TRUE(has_text(message, row.message));
    EXPECT_TRUE(run_in(scratch.path(), python(import + row.convert))) << row.convert;
    EXPECT_EQ(numbers_in(scratch.path() / "NEW.npy"), (std::vector<float>{0, 1, 2})) << row.convert;
  }
}

TEST(Remedies, TablesOfText) {
  const std::tuple<std::string, std::string, std::vector<float>> rows[] = {
      {"a,b\n1,2\n", "numpy.loadtxt(FILE, delimiter=',', skiprows=1)", {1, 2}},
      {"1,2\n3,4\r\n", "numpy.loadtxt(FILE, delimiter=',')", {1, 2, 3, 4}},
      {"a;b\n1;-2e1\n", "numpy.loadtxt(FILE, delimiter=';', skiprows=1)", {1, -20}},
      {"1\t2\n3\t4\n", "numpy.loadtxt(FILE, delimiter='\\t')", {1, 2, 3, 4}},
      {"a;b\n1,5;2,5\n", "pandas.read_csv(FILE, sep=';', decimal=',')", {1.5f, 2.5f}},
      {"1,5;2,5\n3,5;4\n",
       "pandas.read_csv(FILE, sep=';', decimal=',', header=None)",
       {1.5f, 2.5f, 3.5f, 4}},
      {"name,x\nred,2\n", "pandas.read_csv(FILE, sep=',')", {2}},
  };
  for (const auto& [text, code, expected] : rows) {
    const ScratchDirectory scratch;
    const std::string message = remedy_for(scratch.write("FILE", bytes_of(text)));
    EXPECT_TRUE(has_text(message, "read it with " + code + " and save"));
    const std::string numbers = code.starts_with("pandas") ? ".select_dtypes('number')" : "",
                      import = code.starts_with("pandas") ? "import numpy, pandas" : "import numpy";
    if (!run_in(scratch.path(), python(import))) continue;
    const std::string command = python(fmt::format("{}; numpy.save('NEW.npy', {}{})", import,
                                                   with_name(code, "FILE", "'FILE'"), numbers));
    ASSERT_TRUE(run_in(scratch.path(), command)) << command;
    EXPECT_EQ(numbers_in(scratch.path() / "NEW.npy"), expected) << command;
  }
}

TEST(Remedies, PicturesAndPages) {
  const ScratchDirectory scratch;
  const std::string_view gif(
      "GIF89a\1\0\1\0\x80\0\0\xff\xff\xff\0\0\0,\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;", 35);
  EXPECT_TRUE(has_text(remedy_for(scratch.write("OLD", bytes_of(gif))), "'convert OLD NEW.png'"));
  if (run_in(scratch.path(), "convert -version && convert -list format | grep -q PNG")) {
    EXPECT_TRUE(run_in(scratch.path(), "convert OLD NEW.png"));
    EXPECT_EQ(first_bytes_of(FileBytes::open(scratch.path() / "NEW.png")).content, Content::png);
  }
  const auto page = scratch.write("page", bytes_of("<!DOCTYPE html><html>Sign in</html>\n"));
  EXPECT_TRUE(has_text(remedy_for(page), "look at it with 'head'"));
  EXPECT_TRUE(run_in(scratch.path(), "head page"));
}

}  // namespace
}  // namespace tutti::data
