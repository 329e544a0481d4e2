"""Reads and writes .npz files of float32 arrays by Python alone, as rnnbench and numpy.savez do."""

import ast
import math
import struct
import zipfile

MAGIC = b"\x93NUMPY\x01\x00"


def read(path):
    """Returns the arrays of a file by name: each a shape and the bytes of its values."""
    arrays = {}
    with zipfile.ZipFile(path) as file:
        for entry in file.namelist():
            data = memoryview(file.read(entry))
            start = 10 + struct.unpack_from("<H", data, 8)[0]
            head = ast.literal_eval(bytes(data[10:start]).decode("latin1"))
            if bytes(data[:8]) != MAGIC or head["descr"] != "<f4" or head["fortran_order"]:
                raise ValueError(f"{entry} is no array of <f4 in C order")
            arrays[entry[: -len(".npy")]] = head["shape"], data[start:]
    return arrays


def write(path, arrays):
    """Writes arrays by name: each a shape and the bytes of its values."""
    with zipfile.ZipFile(path, "w") as file:
        for name, (shape, data) in arrays.items():
            if len(data) != 4 * math.prod(shape):
                raise ValueError(f"{name} has {len(data)} bytes, which is not its shape {shape}")
            head = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
            head += " " * (-(len(head) + 11) % 64) + "\n"
            with file.open(name + ".npy", "w", force_zip64=True) as entry:
                entry.write(MAGIC + struct.pack("<H", len(head)) + head.encode())
                entry.write(data)
