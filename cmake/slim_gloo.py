"""Writes Gloo's library without the needs of transports that Rushlight has no use for: ``libgloo.so.0 OUT``.

Distributions build Gloo with InfiniBand and with Redis. Process groups go over TCP and meet in their own
store, so that a wheel need not carry libibverbs, libnl and libhiredis: their functions become weak, which the
loader leaves out where no library has them.
"""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from slim_onednn import NEEDED, Library

UNUSED = ("libibverbs.so", "libhiredis.so")
FUNCTIONS = ("ibv_", "redis", "freeReplyObject")
VERNEED, VERNEEDNUM, WEAK = 0x6FFFFFFE, 0x6FFFFFFF, 2


def drop_versions(library, strings):
    """Take the versions of unused libraries out of the list; where it then starts and how long it is."""
    table = library.sections[".gnu.version_r"]
    kept, at = [], table.offset
    while True:
        _, _, file, _, following = struct.unpack_from("<HHIII", library.data, at)
        if not library.text_at(strings.offset + file).startswith(UNUSED):
            kept.append(at)
        if not following:
            break
        at += following
    for here, after in zip(kept, [*kept[1:], kept[-1]]):
        struct.pack_into("<I", library.data, here + 12, after - here)
    skipped = kept[0] - table.offset
    struct.pack_into(
        "<QQQ", library.data, table.header + 16, table.address + skipped, kept[0], table.size - skipped
    )
    struct.pack_into("<I", library.data, table.header + 44, len(kept))
    return {VERNEED: table.address + skipped, VERNEEDNUM: len(kept)}


def main(path, out):
    library = Library(path)
    dynamic, strings = library.sections[".dynamic"], library.sections[".dynstr"]
    numbers = drop_versions(library, strings)
    entries = []
    for tag, value in struct.iter_unpack("<QQ", library.data[dynamic.offset : dynamic.offset + dynamic.size]):
        if tag != NEEDED or not library.text_at(strings.offset + value).startswith(UNUSED):
            entries.append((tag, numbers.get(tag, value)))
    packed = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    library.data[dynamic.offset : dynamic.offset + dynamic.size] = packed.ljust(dynamic.size, b"\0")
    versions = library.sections[".gnu.version"].offset
    for number, (at, name, info, section, _, _) in enumerate(library.dynamic_symbols):
        if not section and name.startswith(FUNCTIONS):
            library.data[at + 4] = WEAK << 4 | info & 15
            struct.pack_into("<H", library.data, versions + 2 * number, 1)
    Path(out).write_bytes(library.data)


if __name__ == "__main__":
    main(*sys.argv[1:])
