"""20 odd files of arrays (NetCDF, HDF5, TIFF, NumPy), of the 30 of trial_files.py. Values are computed with the library that has written
the file, or are those that were written."""
import subprocess
import sys

from trial import NOT_DAMAGED, STATS, channel_means, collector, h5py, holds, inspect, keep, kept_means, kept_range, netCDF4, np, ramp, stats, tifffile

TRIALS = []
trial = collector(TRIALS)


# NetCDF

@trial("NetCDF", inspect("sst.nc"), ok=[kept_range, r"\bsst\b"], never=NOT_DAMAGED)
def netcdf_unsigned_short(folder):
    """Packed 16-bit numbers that are unsigned by convention, a scale, an offset and a fill value: the range is netCDF4's."""
    with netCDF4.Dataset(folder / "sst.nc", "w") as file:
        for name, size in (("y", 6), ("x", 5)):
            file.createDimension(name, size)
        sst = file.createVariable("sst", "i2", ("y", "x"), fill_value=np.int16(-1))
        sst.setncatts({"_Unsigned": "true", "scale_factor": np.float32(0.01), "add_offset": np.float32(100), "units": "K"})
        sst.set_auto_maskandscale(False)
        stored = np.linspace(16000, 61000, 30).round().astype("u2").reshape(6, 5)
        stored[2, 3] = 65535
        sst[:] = stored.view("i2")
    with netCDF4.Dataset(folder / "sst.nc") as file:
        seen = file["sst"][:]
    keep(folder, [seen.min(), seen.max()])


@trial("NetCDF", STATS, ok=[kept_means], error=[r"valid_(range|min|max)", r"rain"], never=NOT_DAMAGED)
def netcdf_valid_range(folder):
    """Values outside of valid_range are missing, as netCDF4 has it; the field's line says what stands for them."""
    with netCDF4.Dataset(folder / "rain.nc", "w") as file:
        for name, size in (("time", 4), ("c", 2), ("x", 5)):
            file.createDimension(name, size)
        rain = file.createVariable("rain", "f4", ("time", "c", "x"))
        rain.valid_range = np.array([0, 100], "f4")
        values = ramp((4, 2, 5), 0.75).astype("f4")
        values[1, 0, 2], values[3, 1, 4] = -999, 32768
        rain[:] = values
    with netCDF4.Dataset(folder / "rain.nc") as file:
        keep(folder, channel_means(file["rain"][:].filled(7.5)))
    stats(folder, "rain: from rain axis 0 missing 7.5", "rain.nc")


@trial("NetCDF", inspect("stations.nc"), ok=[holds(3.25, 13.75), r"\bheight\b"], never=NOT_DAMAGED)
def netcdf_characters(folder):
    """Names of stations as characters and as strings beside the numbers, and an unlimited dimension without a record."""
    with netCDF4.Dataset(folder / "stations.nc", "w") as file:
        for name, size in (("station", 22), ("letters", 4), ("time", None)):
            file.createDimension(name, size)
        file.createVariable("name", "S1", ("station", "letters"))[:] = np.full((22, 4), b"a")
        file.createVariable("operator", str, ("station",))[:] = np.array(["institute"] * 22, object)
        file.createVariable("flow", "f4", ("time", "station"))
        file.createVariable("height", "f8", ("station",))[:] = ramp(22)


@trial("NetCDF", STATS, ok=[kept_means], never=NOT_DAMAGED)
def netcdf_groups(folder):
    """The array of that name in a group of a group, beside one of the same name at the top."""
    values = ramp((5, 3, 4))
    with netCDF4.Dataset(folder / "run.nc", "w") as file:
        for name, size in (("time", None), ("level", 3), ("x", 4)):
            file.createDimension(name, size)
        file.createVariable("u", "f4", ("time", "level", "x"))[:] = -values
        inner = file.createGroup("model").createGroup("ocean")
        inner.createVariable("u", "f4", ("time", "level", "x"), zlib=True)[:] = values
    keep(folder, channel_means(values))
    stats(folder, "u: from model/ocean/u axis 0", "run.nc")


# HDF5

@trial("HDF5", STATS, ok=[kept_means], never=NOT_DAMAGED)
def hdf5_linked_group(folder):
    """A soft link to a group in which an external link, relative to the file, leads to the array."""
    values = ramp((6, 2, 3))
    (folder / "raw").mkdir()
    with h5py.File(folder / "raw/part.h5", "w") as file:
        file["deep/counts"] = values.astype("f4")
    with h5py.File(folder / "all.h5", "w") as file:
        file["runs/7/x"] = h5py.ExternalLink("raw/part.h5", "/deep/counts")
        file["latest"] = h5py.SoftLink("/runs/7")
    keep(folder, channel_means(values))
    stats(folder, "x: from latest/x axis 0", "all.h5")


@trial("HDF5", inspect("a.h5"), ok=[holds(3.25, 11.75), r"\bimages\b"], never=NOT_DAMAGED)
def hdf5_dangling_link(folder):
    """Links that lead nowhere, a link to the group that it lies in, and a name with a terminal's escape sequence, beside a sound array."""
    with h5py.File(folder / "a.h5", "w") as file:
        file["images"] = ramp(18)
        file["odd\x1b[31m\x07name"] = ramp(4)
        file["old"] = h5py.SoftLink("/gone/away")
        file["other"] = h5py.ExternalLink("gone.h5", "/x")
        file["group/self"] = h5py.SoftLink("/group")


@trial("HDF5", STATS, ok=[kept_means], never=NOT_DAMAGED)
def hdf5_filters(folder):
    """Big-endian f64, chunks that do not divide the extents, shuffle, deflate and Fletcher's checksum."""
    values = ramp((7, 3, 5), 1.5)
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("x", data=values, dtype=">f8", chunks=(2, 2, 3), compression="gzip", shuffle=True, fletcher32=True)
    keep(folder, channel_means(values))
    stats(folder, "x: from x axis 0", "a.h5")


@trial("HDF5", inspect("a.h5"), ok=[holds(3.25, 9.75), r"\bx\b", r"names"], never=NOT_DAMAGED)
def hdf5_strings_and_compound(folder):
    """Variable strings, a table of a compound type, references and an empty data set beside the numbers."""
    with h5py.File(folder / "a.h5", "w") as file:
        file["x"] = ramp(14)
        file["names"] = ["αβ", "c"] * 7
        file["table"] = np.zeros(3, [("id", "i4"), ("energy", "f8")])
        file["nothing"] = h5py.Empty("f4")
        file.create_dataset("link", (1,), dtype=h5py.ref_dtype)[0] = file["x"].ref


@trial("HDF5", STATS, ok=[kept_means], error=[r"mask", r"bool|enum"], never=NOT_DAMAGED)
def hdf5_bool_enum(folder):
    """Truth values as h5py stores them: an enumeration."""
    values = np.arange(60).reshape(5, 3, 4) % 7 < 3
    with h5py.File(folder / "a.h5", "w") as file:
        file["mask"] = values
    keep(folder, channel_means(values))
    stats(folder, "mask: from mask axis 0", "a.h5")


@trial("HDF5", STATS, ok=[kept_means], error=[r"\bx\b", r"virtual"], never=NOT_DAMAGED)
def hdf5_virtual(folder):
    """A virtual data set over three files, behind a user block of 1024 bytes."""
    values = ramp((6, 2, 3))
    layout = h5py.VirtualLayout((6, 2, 3), "f8")
    for i in range(3):
        with h5py.File(folder / f"part{i}.hdf", "w") as file:
            file["x"] = values[2 * i:2 * i + 2]
        layout[2 * i:2 * i + 2] = h5py.VirtualSource(f"part{i}.hdf", "x", (2, 2, 3))
    with h5py.File(folder / "all.h5", "w", userblock_size=1024) as file:
        file.create_virtual_dataset("x", layout)
    keep(folder, channel_means(values))
    stats(folder, "x: from x axis 0", "all.h5")


@trial("HDF5", inspect("a.h5"), ok=[holds(3.25, 9.75)], error=[r"a\.h5", r"h5clear|writ(er|ing)|open|closed"], never=NOT_DAMAGED)
def hdf5_swmr_left_open(folder):
    """A file whose writer, in SWMR mode, was killed."""
    import h5py  # noqa: F401, without it the trial is not run
    code = ("import h5py, numpy, os, sys\nf = h5py.File(sys.argv[1], 'w', libver='latest')\n"
            "d = f.create_dataset('x', data=3.25 + 0.5 * numpy.arange(14), maxshape=(None,), chunks=(7,))\n"
            "f.swmr_mode = True\nd.flush()\nf.flush()\nos._exit(0)\n")
    subprocess.run([sys.executable, "-c", code, str(folder / "a.h5")], check=True)


@trial("HDF5", inspect("data.h5"), error=[r"data\.h5", r"HTML|web page|text"], codes=(1,), never=NOT_DAMAGED[:2])
def hdf5_login_page(folder):
    """A portal's login page, saved under the name of the data."""
    (folder / "data.h5").write_text("<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><form>User name</form></body></html>\n" * 20)


# TIFF

@trial("TIFF", STATS, ok=[kept_means], error=[r"a\.tif", r"f16|float16|half|16 bit"], never=NOT_DAMAGED)
def tiff_big_float16(folder):
    """BigTIFF, big-endian, pages of 16-bit floats."""
    values = ramp((5, 4, 6)).astype("f2")
    with tifffile.TiffWriter(folder / "a.tif", bigtiff=True, byteorder=">") as file:
        for page in values:
            file.write(page, contiguous=False, metadata=None)
    keep(folder, channel_means(values))
    stats(folder, "image: from image axis 0", "a.tif")


@trial("TIFF", STATS, ok=[kept_means], error=[r"a\.tif", r"plan(ar|e)"], never=NOT_DAMAGED)
def tiff_planar(folder):
    """Three planes behind each other in one page (PlanarConfiguration 2): C x H x W, or H x W x C."""
    values = ramp((3, 5, 3), 1.0).astype("u2")  # by either order of axes another mean
    tifffile.imwrite(folder / "a.tif", values, photometric="rgb", planarconfig="separate", metadata=None)
    keep(folder, channel_means(values[None]), channel_means(values.transpose(1, 2, 0)[None]))
    stats(folder, "image: from image whole", "a.tif")


@trial("TIFF", inspect("a.tif"), ok=[r"3x8x6", r"12x10|4x12x10"], never=NOT_DAMAGED)
def tiff_two_series(folder):
    """Two series of pages: three of 8 x 6, then four of 12 x 10; both are listed."""
    with tifffile.TiffWriter(folder / "a.tif") as file:
        for page in ramp((3, 8, 6)).astype("u2"):
            file.write(page, contiguous=False, metadata=None)
        for page in ramp((4, 12, 10)).astype("u2"):
            file.write(page, contiguous=False, metadata=None)


# NumPy

@trial("NumPy", STATS, ok=[kept_means], never=NOT_DAMAGED)
def npy_fortran_big_endian(folder):
    """Big-endian numbers in Fortran's order, in the format's version 2."""
    values = ramp((6, 3, 4))
    with open(folder / "a.npy", "wb") as file:
        np.lib.format.write_array(file, np.asfortranarray(values.astype(">f4")), version=(2, 0))
    keep(folder, channel_means(values))
    stats(folder, "x: from array axis 0", "a.npy")


@trial("NumPy", inspect("a.npy"), error=[r"a\.npy", r"object|pickle"], codes=(1, 2), never=NOT_DAMAGED)
def npy_objects(folder):
    """An array of objects, which is a pickle."""
    np.save(folder / "a.npy", np.array([np.zeros(3), np.zeros(4)], object), allow_pickle=True)


@trial("NumPy", inspect("a.npz"), ok=[holds(3.25, 8.75), r"\bx\b"], never=NOT_DAMAGED)
def npz_of_mixed_members(folder):
    """Numbers beside a structured array, texts, a pickled dictionary and a number without extents."""
    np.savez_compressed(folder / "a.npz", x=ramp(12), table=np.zeros(3, [("id", "i4"), ("e", "f8")]), names=np.array(["a", "bc"]),
                        settings=np.array({"lr": 1}, object), scale=np.float64(2.5))


@trial("NumPy", inspect("a.npy"), error=[r"a\.npy", r"behind|after|trailing|more|too (long|large|many)"], codes=(1, 2))
def npy_goes_on(folder):
    """Two arrays saved one after the other into one .npy file: the second one is not lost without a word."""
    with open(folder / "a.npy", "wb") as file:
        np.save(file, ramp((4, 3)))
        np.save(file, ramp((4, 3), start=90))


@trial("NumPy", f"mkfifo pipe.npy; for f in empty.npy x.npy pipe.npy; do {inspect('$f')}; c=$?; test $c = 1 -o $c = 2 || exit 0; done; exit $c",
       error=[r"empty\.npy[^\n]*(empty|0 bytes|no bytes)", r"x\.npy[^\n]*(folder|directory|no file)",
              r"pipe\.npy[^\n]*(pipe|FIFO|no file|not a (regular )?file)"], codes=(1, 2))
def npy_that_is_none(folder):
    """A file of 0 bytes, an empty folder and a pipe under names of arrays."""
    (folder / "empty.npy").write_bytes(b"")
    (folder / "x.npy").mkdir()
