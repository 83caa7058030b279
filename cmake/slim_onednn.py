"""Writes oneDNN's library without the code that Rushlight never reaches: ``OBJDUMP libdnnl.so.3 OUT``.

The library comes compiled, with twenty kinds of primitives, int8 kernels and a graph compiler; Rushlight
asks for convolutions, matrix products and reorders of float32 and bfloat16. What a linker does with an
archive is done here with the library's own table of symbols:

1. Constructors of other primitives answer "unimplemented", as they do for problems that they do not know.
2. All is kept that instructions and relocations refer to, from the functions that Rushlight may call, from
   what runs at start and from what C++ shares among libraries. All other code becomes breakpoint
   instructions, which compress to nothing, and loses its relocations and unwinding. No address changes.
3. Functions that are gone are no longer exported, so that a link against one fails.

libimf and libintlc are no longer needed: mathematical functions come from libm, which precedes libimf in
every process that loads Rushlight, and `_intel_fast_memcpy` becomes memcpy.
"""

import bisect
import re
import struct
import subprocess
import sys
from collections import defaultdict

# How descriptors of primitives are made: `create` of a kernel's descriptor, tried one after the other.
CREATE = re.compile(r"_ZN4dnnl4impl16primitive_desc_t6createI|6createEPPNS0_\w*(reorder|sum|concat)_pd_tE")
KINDS = re.compile(r"(?<!de)convolution|matmul|inner_product|reorder")
OTHER = re.compile(r"deconvolution|x8s8s32x|int8|rnn_|sparse")
OTHER_REORDER = re.compile(r"reorder.*dnnl_data_type_t[14567]E")  # float16, int32, int8, uint8, float64
# AVX2 and AVX-512 with instructions for int8; layers with those for float16, whose tables are by type.
OTHER_ISA = re.compile(r"cpu_isa_tE(15|103)E|(convolution|inner_product).*cpu_isa_tE(495|8175)E")
# Direct convolutions for SSE 4.1: without AVX, on processors from before 2013, they are matrix products.
OLD_ISA = re.compile(r"jit_sse41_\w*convolution|convolution.*cpu_isa_tE1E")
# Exported functions that stay: those of <oneapi/dnnl/dnnl.h> but for graphs and stand-alone integer products.
CALLED = re.compile(r"dnnl_(?!graph_|gemm_|sgemm)\w+")
UNIMPLEMENTED = bytes.fromhex("b803000000c3")  # mov eax, dnnl_unimplemented; ret
REFERENCE = re.compile(
    rb"\s*([0-9a-f]+):\t(?:(?:bnd |notrack )?(?:call|j[a-z]+)\s+([0-9a-f]+) <|.*# ([0-9a-f]+)(?: <|$))"
)
RELATIVE, UNDEFINED_WEAK = 8, 0x20
FUNCTION, SECTION, FILE, TLS = 2, 3, 4, 6
NEEDED, RELASZ, RELACOUNT = 1, 8, 0x6FFFFFF9


class Section:
    def __init__(self, data, header, at):
        self.name_at, self.kind, self.flags, self.address, self.offset, self.size = struct.unpack_from(
            "<IIQQQQ", data, at
        )
        self.header, self.end = at, self.address + self.size


class Library:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = bytearray(file.read())
        start, width, count, names = struct.unpack_from("<QxxxxxxxxxxHHH", self.data, 40)
        sections = [Section(self.data, self.data, start + i * width) for i in range(count)]
        self.sections = {self.text_at(sections[names].offset + s.name_at): s for s in sections}
        self.dynamic_symbols = list(self.symbols(".dynsym", ".dynstr"))

    def text_at(self, offset):
        return self.data[offset : self.data.index(b"\0", offset)].decode()

    def symbols(self, table, strings):
        """Offset in the file, name, kind and binding, section, address and size of each."""
        table, strings = self.sections[table], self.sections[strings]
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, section, address, size = struct.unpack_from("<IBBHQQ", self.data, at)
            yield at, self.text_at(strings.offset + name), info, section, address, size

    def find_objects(self, path):
        """What the library consists of, by address: what has a name, slots of tables, and gaps between."""
        if ".symtab" not in self.sections:
            sys.exit(f"{path} does not say where its functions are: its symbols were stripped")
        named = {}
        for _, name, info, section, address, size in self.symbols(".symtab", ".strtab"):
            if 0 < section < 0xFF00 and info & 15 not in (SECTION, FILE, TLS):
                if address not in named or named[address][0] < size:
                    named[address] = (size, name)
        order = sorted(named)
        starts, sizes, names = [], [], []
        self.labels = set()

        def add(start, size, name):
            starts.append(start), sizes.append(size), names.append(name)

        for title, s in sorted(self.sections.items(), key=lambda item: item[1].address):
            slot = {".got": 8, ".init_array": 8, ".plt": 16}.get(title)
            if not s.address or not s.flags & 2 or s.flags & 0x400:
                continue
            at = s.address
            if slot:
                for at in range(s.address, s.end, slot):
                    add(at, slot, title)
                continue
            here = order[bisect.bisect_left(order, s.address) : bisect.bisect_left(order, s.end)]
            for address, following in zip(here, [*here[1:], s.end]):
                size, name = named[address]
                if address > at:
                    add(at, address - at, title)
                if not size:  # a label of assembly, whose code may run on into the next label
                    size = following - address
                    self.labels.add(len(starts))
                add(address, size, name)
                at = max(at, address + size)
            if at < s.end:
                add(at, s.end - at, title)
        self.starts, self.sizes, self.names = starts, sizes, names

    def find(self, address):
        """The number of the object that holds an address, or None."""
        i = bisect.bisect_right(self.starts, address) - 1
        return i if i >= 0 and address < self.starts[i] + self.sizes[i] else None

    def relocations(self, table):
        s = self.sections[table]
        return list(struct.iter_unpack("<QQq", self.data[s.offset : s.offset + s.size]))

    def inside(self, address, *titles):
        return any(self.sections[t].address <= address < self.sections[t].end for t in titles)


def references(library, objdump, path):
    """For each object, which others it refers to."""
    found = defaultdict(set)
    tables = {}
    command = [objdump, "-d", "-w", "--no-show-raw-insn", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as listing:
        here, end = None, 0
        for line in listing.stdout:
            if b"#" not in line and b"call" not in line and b"\tj" not in line:
                continue
            match = REFERENCE.match(line)
            if not match:
                continue
            at, target = int(match[1], 16), int(match[2] or match[3], 16)
            if at >= end or here is None:
                here = library.find(at)
                end = library.starts[here] + library.sizes[here]
            other = library.find(target)
            if other is None or other == here:
                continue
            found[here].add(other)
            if target % 4 == 0 and library.inside(target, ".rodata"):
                tables.setdefault(target, set()).add(here)
    if listing.returncode:
        sys.exit(f"{objdump} could not read {path}")
    exported = {at: address for at, (_, _, _, _, address, _) in enumerate(library.dynamic_symbols)}
    for table in (".rela.dyn", ".rela.plt"):
        for offset, info, addend in library.relocations(table):
            target = addend if info & 0xFFFFFFFF == RELATIVE else exported[info >> 32] + addend
            other = library.find(target) if target else None
            if other is not None:
                found[library.find(offset)].add(other)
    for at in library.labels & {label - 1 for label in library.labels}:
        found[at].add(at + 1)
    # Compilers turn tables of pointers into tables of distances from their own start.
    for start, users in tables.items():
        for other in distances(library, start):
            for user in users:
                found[user].add(other)
    return found


def distances(library, start):
    rodata = library.sections[".rodata"]
    for at in range(start, rodata.end - 3, 4):
        (distance,) = struct.unpack_from("<i", library.data, rodata.offset + at - rodata.address)
        if not library.inside(start + distance, ".rodata", ".data.rel.ro"):
            return
        if library.inside(start + distance, ".data.rel.ro"):
            yield library.find(start + distance)


def reach(found, roots, refusing):
    kept, waiting = set(roots), list(roots)
    while waiting:
        at = waiting.pop()
        if at in refusing:
            continue
        new = found[at] - kept
        kept |= new
        waiting.extend(new)
    return kept


def refuses(name):
    """Whether this is the constructor of a descriptor that Rushlight has no use for."""
    if not CREATE.search(name):
        return False
    return not KINDS.search(name) or any(
        rule.search(name) for rule in (OTHER, OTHER_REORDER, OTHER_ISA, OLD_ISA)
    )


def drop_functions(library, kept, refusing):
    text = library.sections[".text"]
    shift = text.offset - text.address
    for i, (start, size) in enumerate(zip(library.starts, library.sizes)):
        if not text.address <= start < text.end or (i in kept and i not in refusing):
            continue
        code = UNIMPLEMENTED if i in kept else b""
        library.data[start + shift : start + shift + size] = code + b"\xcc" * (size - len(code))


def drop_exports(library, kept):
    for at, _, info, section, address, _ in library.dynamic_symbols:
        if section and info & 15 == FUNCTION and library.find(address) not in kept:
            struct.pack_into("<BBHQQ", library.data, at + 4, UNDEFINED_WEAK | FUNCTION, 0, 0, 0, 0)


def drop_relocations(library, kept):
    table = library.sections[".rela.dyn"]
    entries = library.relocations(".rela.dyn")
    constant = library.sections[".data.rel.ro"]
    entries = [
        entry
        for entry in entries
        if not constant.address <= entry[0] < constant.end or library.find(entry[0]) in kept
    ]
    packed = b"".join(struct.pack("<QQq", *entry) for entry in entries)
    library.data[table.offset : table.offset + table.size] = packed.ljust(table.size, b"\0")
    struct.pack_into("<Q", library.data, table.header + 32, len(packed))
    relative = sum(entry[1] & 0xFFFFFFFF == RELATIVE for entry in entries)
    return {RELASZ: len(packed), RELACOUNT: relative}


def drop_unwinding(library, kept):
    """Frames of functions that are gone keep their addresses, by which all frames are sorted."""
    frames, landing = library.sections[".eh_frame"], library.sections[".gcc_except_table"]
    pads, gone = set(), set()
    at, augmented = frames.offset, {}
    while at < frames.offset + frames.size:
        length, parent = struct.unpack_from("<II", library.data, at)
        if not length:
            break
        end = at + 4 + length
        address = at - frames.offset + frames.address
        if not parent:
            augmentation = library.text_at(at + 9)
            if augmentation not in ("zR", "zPLR"):
                sys.exit(f"frames with augmentation {augmentation} are not known")
            augmented[at] = augmentation
        else:
            has_pad = augmented[at + 4 - parent] == "zPLR"
            (distance,) = struct.unpack_from("<i", library.data, at + 8)
            function = library.find(address + 8 + distance)
            (pad,) = struct.unpack_from("<i", library.data, at + 17) if has_pad else (0,)
            if pad:
                (pads if function in kept else gone).add(address + 17 + pad)
            if function not in kept:
                library.data[at + 17 : end] = bytes(end - at - 17)
        at = end
    borders = [*sorted(pads | gone), landing.end]
    shift = landing.offset - landing.address
    for start, end in zip(borders, borders[1:]):
        if start not in pads:
            library.data[start + shift : end + shift] = bytes(end - start)


def change_needs(library, numbers):
    """libm instead of libimf and libintlc, memcpy of `_intel_fast_memcpy`; new sizes of tables."""
    dynamic, strings = library.sections[".dynamic"], library.sections[".dynstr"]
    entries = []
    for tag, value in struct.iter_unpack("<QQ", library.data[dynamic.offset : dynamic.offset + dynamic.size]):
        name = library.text_at(strings.offset + value) if tag == NEEDED else ""
        if name == "libintlc.so.5":
            at = strings.offset + value
            library.data[at : at + len(name)] = b"libm.so.6".ljust(len(name), b"\0")
        if name != "libimf.so":
            entries.append((tag, numbers.get(tag, value)))
    packed = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    library.data[dynamic.offset : dynamic.offset + dynamic.size] = packed.ljust(dynamic.size, b"\0")

    first = library.sections[".dynsym"].offset
    versions = library.sections[".gnu.version"].offset
    at = {name: (offset, (offset - first) // 24) for offset, name, *_ in library.dynamic_symbols}
    for name in ("memcpy", "memset"):
        if f"_intel_fast_{name}" not in at:
            continue
        (new, number), (old, old_number) = at[name], at[f"_intel_fast_{name}"]
        library.data[old : old + 4] = library.data[new : new + 4]
        version = library.data[versions + 2 * number : versions + 2 * number + 2]
        library.data[versions + 2 * old_number : versions + 2 * old_number + 2] = version


def slim(library, objdump, path, refusing):
    """Take from the library, which lies in a file too, what nothing reaches; the numbers of what is kept."""
    refusing = {i for i in refusing if library.sizes[i] >= len(UNIMPLEMENTED)}
    kept = {i for i, name in enumerate(library.names) if re.fullmatch(r"\.(init|fini)(_array)?", name)}
    for _, name, info, section, address, _ in library.dynamic_symbols:
        if section and (info >> 4 != 1 or CALLED.fullmatch(name)):
            kept.add(library.find(address))
    kept = reach(references(library, objdump, path), kept - {None}, refusing)
    drop_functions(library, kept, refusing)
    drop_exports(library, kept)
    drop_unwinding(library, kept)
    change_needs(library, drop_relocations(library, kept))
    return kept


def main(objdump, path, out):
    library = Library(path)
    library.find_objects(path)
    refusing = {i for i, name in enumerate(library.names) if refuses(name)}
    if len(refusing) < 250:
        sys.exit(f"{path} is not the library that this file knows: oneDNN 3.2 of onednn-cpu-tbb 2023.2.0")
    kept = slim(library, objdump, path, refusing)
    with open(out, "wb") as file:
        file.write(library.data)
    inside = [i for i, start in enumerate(library.starts) if library.inside(start, ".text")]
    left = sum(library.sizes[i] for i in inside if i in kept)
    print(f"slim_onednn: {left / 1e6:.1f} of {library.sections['.text'].size / 1e6:.1f} MB of code are kept")


if __name__ == "__main__":
    main(*sys.argv[1:])
