#!/usr/bin/env python3
"""Makes the CTF 2 trace beside it, and what a reader should say of it.

It shares no code and no table with the reader: each field below is given as
its class, its bits and the text of its value.

    python3 make.py        writes metadata, stream-0, stream-1, expected.txt
"""

import json
import struct

UUID = bytes(range(16))


class Bits:
    """Bits one after the other, in the order of the stream."""

    def __init__(self):
        self.bits = []

    def align(self, n):
        while len(self.bits) % n:
            self.bits.append(0)

    def put(self, value, length, order="le", reverse=False, align=1):
        self.align(align)
        bits = [value >> i & 1 for i in range(length)]
        if reverse:
            bits.reverse()
        # A stream of bits: little-endian begins with the lowest bit of a byte,
        # big-endian with the highest.
        if order == "be":
            bits.reverse()
        self.bits += [(b, order) for b in bits]

    def raw(self, data):
        self.align(8)
        for byte in data:
            self.put(byte, 8)

    def leb(self, value, signed=False):
        out = []
        while True:
            out.append(value & 0x7F)
            value >>= 7
            if value == 0 and (not signed or out[-1] < 64) or signed and value == -1 and out[-1] >= 64:
                break
        self.raw([b | 0x80 for b in out[:-1]] + out[-1:])

    def bytes(self):
        self.align(8)
        out = bytearray()
        for at in range(0, len(self.bits), 8):
            byte = 0
            for i, bit in enumerate(self.bits[at:at + 8]):
                bit, order = bit if isinstance(bit, tuple) else (bit, "le")
                byte |= bit << (i if order == "le" else 7 - i)
            out.append(byte)
        return bytes(out)


def uint(length, order="little-endian", align=None, kind="unsigned-integer", **more):
    fc = {"type": f"fixed-length-{kind}", "length": length, "byte-order": order, **more}
    if align:
        fc["alignment"] = align
    return {k.replace("_", "-"): v for k, v in fc.items()}


def sint(length, **more):
    return uint(length, kind="signed-integer", **more)


def struct_fc(*members, **more):
    members = [{"name": n, "field-class": c} for n, c in members]
    return {"type": "structure", "member-classes": members, **more}


def at(*path, origin=None):
    return {**({"origin": origin} if origin else {}), "path": list(path)}


U8, U16, U32, U64 = (uint(n, align=8) for n in (8, 16, 32, 64))
LEB = {"type": "variable-length-unsigned-integer"}
SLEB = {"type": "variable-length-signed-integer"}
BE = "big-endian"
TEXT = {"type": "null-terminated-string"}


def role(fc, *roles):
    return {**fc, "roles": list(roles)}


# Each event: name, payload class, function that writes it, text of the value.
EVENTS = []


def event(name, fc, write, text, context=None):
    EVENTS.append((name, fc, write, text, context))


def bits(b):
    b.put(5, 3)
    b.put(-3 & 0x1FFF, 13)
    b.put(0xABC, 12, "be", align=8)
    b.put(-2 & 0xF, 4, "be")
    b.put(0b0011, 4, reverse=True, align=8)
    b.put(0b01, 2, reverse=True)
    b.put(0x1234, 16, "be", reverse=True, align=8)
    b.put(0xC0DE, 16, align=8)
    b.put(4, 8, align=8)
    b.put(0, 8, align=8)
    b.put(0b101001, 8, align=8)
    b.put(7, 8, align=8)
    b.put(200, 8, align=8)
    b.put(0x1FFFFFFFFFFFFFFFF & (2**61 - 1), 61)


event("bits", struct_fc(
    ("u3", uint(3)),
    ("s13", sint(13)),
    ("be12", uint(12, BE, align=8)),
    ("be4", uint(4, BE, kind="signed-integer")),
    ("turned", uint(4, bit_order="last-to-first", align=8)),
    ("turned2", uint(2, bit_order="last-to-first")),
    ("turned-be", uint(16, BE, bit_order="first-to-last", align=8)),
    ("array", uint(16, align=8, kind="bit-array")),
    ("yes", uint(8, align=8, kind="boolean")),
    ("no", uint(8, align=8, kind="boolean")),
    ("map", uint(8, align=8, kind="bit-map", flags={"low": [[0, 2]], "three": [[3, 3]], "high": [[4, 4], [6, 7]]})),
    ("named", uint(8, align=8, mappings={"small": [[0, 9]], "large": [[10, 99], [150, 160]]}, preferred_display_base=16)),
    ("unnamed", uint(8, align=8, mappings={"small": [[0, 9]]})),
    ("wide", uint(61)),
), bits, '{u3=5, s13=-3, be12=2748, be4=-2, turned=3, turned2=1, turned-be=4660, array=49374, yes=true:4, '
    'no=false:0, map=41, named=small:7, unnamed=200, wide=2305843009213693951}')


def lebs(b):
    for value in (0, 127, 128, 2**64 - 1):
        b.leb(value)
    for value in (0, -1, 63, 64, -64, -65, -2**63, 2**63 - 1):
        b.leb(value, signed=True)
    b.raw([0x83, 0x80, 0x00])
    b.leb(-5, signed=True)


event("lebs", struct_fc(
    *((f"u{i}", LEB) for i in range(4)), *((f"s{i}", SLEB) for i in range(8)), ("padded", LEB),
    ("named", {**SLEB, "mappings": {"five below": [[-5, -5]], "zero": [[0, 0]]}}),
), lebs, '{u0=0, u1=127, u2=128, u3=18446744073709551615, s0=0, s1=-1, s2=63, s3=64, s4=-64, s5=-65, '
    's6=-9223372036854775808, s7=9223372036854775807, padded=3, named=five below:-5}')


def floats(b):
    b.raw(struct.pack("<f", 1.5) + struct.pack(">f", -0.25) + struct.pack("<d", 1e100) + struct.pack(">d", -2.0))


def real(length, order="little-endian"):
    return uint(length, order, align=8, kind="floating-point-number")


event("floats", struct_fc(("f", real(32)), ("fb", real(32, BE)), ("d", real(64)), ("db", real(64, BE))),
      floats, '{f=1.5, fb=-0.25, d=1e100, db=-2.0}')


def strings(b):
    b.raw("é\0".encode())
    b.raw("aĀ😀\0".encode("utf-16-le") + "b\0".encode("utf-32-be"))
    b.raw(b"abc\0\0\0\0" + "hi\0\0".encode("utf-16-be"))
    b.raw([4])
    b.raw(b"wxyz" + "é".encode("utf-32-le"))
    b.raw([0])


event("strings", struct_fc(
    ("plain", TEXT), ("u16", {**TEXT, "encoding": "utf-16le"}), ("u32", {**TEXT, "encoding": "utf-32be"}),
    ("fixed", {"type": "static-length-string", "length": 7}),
    ("fixed16", {"type": "static-length-string", "length": 8, "encoding": "utf-16be"}),
    ("n", U8),
    ("counted", {"type": "dynamic-length-string", "length-field-location": at("n")}),
    ("counted32", {"type": "dynamic-length-string", "length-field-location": at("n"), "encoding": "utf-32le"}),
    ("none", {"type": "static-length-string", "length": 0}),
    ("zero", U8),
    ("empty", {"type": "dynamic-length-string", "length-field-location": at("zero", origin="event-record-payload")}),
), strings, '{plain="é", u16="aĀ😀", u32="b", fixed="abc", fixed16="hi", n=4, counted="wxyz", counted32="é", '
    'none="", zero=0, empty=""}')


event("garbage", struct_fc(("text", {"type": "static-length-string", "length": 7})),
      lambda b: b.raw(b"abc\0def"), '{text="abc"}')


def blobs(b):
    b.put(1, 3)
    b.raw(b"\0\xff\0")
    b.leb(2)
    b.raw(b"\1\0")


event("blobs", struct_fc(
    ("bit", uint(3)), ("fixed", {"type": "static-length-blob", "length": 3, "media-type": "image/x-none"}),
    ("n", LEB), ("counted", {"type": "dynamic-length-blob", "length-field-location": at("n")}),
), blobs, "{bit=1, fixed=x'00ff00', n=2, counted=x'0100'}")


def arrays(b):
    b.align(64)                     # the structure has the alignment of its members
    b.put(3, 8, align=8)
    b.align(32)
    for value in (1, 0, 1):
        b.put(value, 1)
    b.align(64)
    for value in (2, 1, 0):
        b.put(value, 8, align=8)
        b.align(16)                 # also before no element
        for i in range(value):
            b.put(i + 7, 16, align=16)


event("arrays", struct_fc(
    ("n", U8),
    ("flags", {"type": "static-length-array", "length": 3, "minimum-alignment": 32,
               "element-field-class": uint(1, kind="boolean")}),
    ("rows", {"type": "dynamic-length-array", "length-field-location": at("n"), "minimum-alignment": 64,
              "element-field-class": struct_fc(
                  ("m", U8),
                  ("inner", {"type": "dynamic-length-array", "length-field-location": at("m"),
                             "element-field-class": uint(16, align=16)}))}),
), arrays, '{n=3, flags=[true:1, false:0, true:1], rows=[{m=2, inner=[7, 8]}, {m=1, inner=[7]}, {m=0, inner=[]}]}')


def choices(b):
    b.put(1, 8, align=8)
    b.put(0, 8, align=8)
    b.put(-7 & 0xFF, 8, align=8)
    b.put(99, 32, align=8)          # yes
    b.put(11, 16, align=8)          # signed selector
    b.raw(b"four\0")                # by number: the packet's
    b.put(2, 8, align=8)            # length in the option
    b.raw([8, 9])                   # items through the variant
    b.put(1, 8, align=8)            # inner.again


event("choices", struct_fc(
    ("yes", uint(8, align=8, kind="boolean")), ("no", uint(8, align=8, kind="boolean")), ("signed", sint(8, align=8)),
    ("there", {"type": "optional", "selector-field-location": at("yes"), "field-class": U32}),
    ("absent", {"type": "optional", "selector-field-location": at("no"), "field-class": U32}),
    ("ranged", {"type": "optional", "selector-field-location": at("signed"),
                "selector-field-ranges": [[-128, -5], [3, 4]], "field-class": U16}),
    ("by-packet", {"type": "variant", "selector-field-location": at("cpu_id", origin="packet-context"), "options": [
        {"name": "few", "selector-field-ranges": [[0, 3]], "field-class": U8},
        {"selector-field-ranges": [[4, 4], [9, 12]], "field-class": TEXT}]}),
    ("sized", {"type": "variant", "selector-field-location": at("signed"), "options": [
        {"name": "above", "selector-field-ranges": [[0, 127]], "field-class": struct_fc(("count", U16))},
        {"name": "below", "selector-field-ranges": [[-128, -1]], "field-class": struct_fc(("count", U8))}]}),
    ("items", {"type": "dynamic-length-array", "length-field-location": at("sized", "count"),
               "element-field-class": U8}),
    ("inner", struct_fc(("again", {"type": "optional", "selector-field-location": at(None, "yes"),
                                   "field-class": U8}))),
), choices, '{yes=true:1, no=false:0, signed=-7, there=some 99, absent=none, ranged=some 11, '
    'by-packet=option1:"four", sized=below:{count=2}, items=[8, 9], inner={again=some 1}}',
    context=struct_fc(("depth", U8)))

fragments = [
    {"type": "preamble", "version": 2, "uuid": list(UUID), "attributes": {"x": 1.5}},
    {"type": "field-class-alias", "name": "byte", "field-class": U8},
    {"type": "trace-class", "namespace": "hetrace.test", "name": "all", "uid": "7",
     "environment": {"domain": "te\"st", "minus": -1},
     "packet-header-field-class": struct_fc(
         ("m", role(U32, "packet-magic-number")),
         ("u", {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}),
         ("class", role(U32, "data-stream-class-id")), ("instance", role(LEB, "data-stream-id")))},
    {"type": "clock-class", "id": "c", "name": "ticks", "frequency": 1000, "precision": 3, "accuracy": 4,
     "description": "slow", "offset-from-origin": {"seconds": 5, "cycles": 250}, "origin": "unix-epoch"},
    {"type": "clock-class", "id": "other", "frequency": 1000000000,
     "origin": {"namespace": "n", "name": "boot", "uid": "u"}},
]
CONTEXT = struct_fc(
    ("begin", role(U64, "default-clock-timestamp")),
    ("end", role(U64, "packet-end-default-clock-timestamp")),
    ("total", role(U32, "packet-total-length")),
    ("content", role(U32, "packet-content-length")),
    ("seq", role(U16, "packet-sequence-number")),
    ("lost", role(U16, "discarded-event-record-counter-snapshot")),
    ("cpu_id", "byte"))
fragments += [
    {"type": "data-stream-class", "id": 3, "namespace": "s", "name": "first", "default-clock-class-id": "c",
     "packet-context-field-class": CONTEXT,
     "event-record-header-field-class": struct_fc(
         ("which", role(LEB, "event-record-class-id")), ("when", role(uint(16, align=8), "default-clock-timestamp"))),
     "event-record-common-context-field-class": struct_fc(("common", "byte"))},
]
for number, (name, fc, _, _, context) in enumerate(EVENTS):
    fragment = {"type": "event-record-class", "data-stream-class-id": 3, "id": 200 + number, "name": name,
                "attributes": {"lttng.org,2009": {"log-level": number}}, "payload-field-class": fc}
    if context:
        fragment["specific-context-field-class"] = context
    fragments.append(fragment)

# The headers of LTTng: 5 bits of id and 27 of the clock, or 32 and 64 behind an id of 31.
compact = struct_fc(
    ("id", uint(5, mappings={"compact": [[0, 30]], "extended": [[31, 31]]}, roles=["event-record-class-id"])),
    ("v", {"type": "variant", "selector-field-location": at("id"), "options": [
        {"name": "compact", "selector-field-ranges": [[0, 30]],
         "field-class": struct_fc(("timestamp", uint(27, roles=["default-clock-timestamp"])))},
        {"name": "extended", "selector-field-ranges": [[31, 31]],
         "field-class": struct_fc(("id", role(U32, "event-record-class-id")),
                                  ("timestamp", role(U64, "default-clock-timestamp")))}]}),
    **{"minimum-alignment": 8})
fragments += [
    {"type": "data-stream-class", "id": 4, "default-clock-class-id": "c", "packet-context-field-class": CONTEXT,
     "event-record-header-field-class": compact},
    {"type": "event-record-class", "data-stream-class-id": 4, "id": 7, "namespace": "lttng.org,2009", "name": "few",
     "payload-field-class": struct_fc(("n", U8))},
    {"type": "event-record-class", "data-stream-class-id": 4, "id": 77, "name": "many", "uid": "x",
     "payload-field-class": struct_fc(("n", U8))},
]

lines = []


def packet(stream, instance, begin, end, seq, lost, cpu, body):
    head = Bits()
    for pass_ in range(2):
        sizes = (0, 0) if not pass_ else (total, content)
        head = Bits()
        head.raw(struct.pack("<I", 0xC1FC1FC1) + UUID + struct.pack("<I", stream))
        head.leb(instance)
        head.raw(struct.pack("<QQIIHHB", begin, end, *sizes, seq, lost, cpu))
        body(head)
        content = len(head.bits)
        total = (content + 7) // 8 * 8 + 64
    return head.bytes() + b"\xee" * 8


def first(b):
    now = 70000
    for number, (name, _, write, text, context) in enumerate(EVENTS):
        now += 20000
        b.leb(200 + number)
        b.put(now & 0xFFFF, 16, align=8)
        b.raw([number])
        if context:
            b.raw([42])
        start = len(b.bits)
        write(b)
        line = f"{now} {5_250_000_000 + now * 1_000_000} {name} {text}"
        if len(lines) < len(EVENTS):
            lines.append(line)


def second(b):
    now = (5 << 27) - 2
    for id, step, n in ((7, 1, 10), (7, 4, 11), (77, 1 << 30, 12), (7, 1, 13)):
        now += step
        b.align(8)
        if id < 31:
            b.put(id, 5)
            b.put(now & (2**27 - 1), 27)
        else:
            b.put(31, 5)
            b.put(id, 32, align=8)
            b.put(now, 64, align=8)
        b.raw([n])
        name = "few" if id == 7 else "many"
        line = f"{now} {5_250_000_000 + now * 1_000_000} {name} {{n={n}}}"
        if line not in lines:
            lines.append(line)


with open("metadata", "w", encoding="utf-8") as file:
    for fragment in fragments:
        file.write("\x1e" + json.dumps(fragment, ensure_ascii=False) + "\n")
with open("stream-0", "wb") as file:
    file.write(packet(3, 300, 70000, 99999999, 0, 0, 10, first))
    file.write(packet(3, 300, 99999999, 99999999, 2, 5, 10, lambda b: None))
with open("stream-1", "wb") as file:
    file.write(packet(4, 1, (5 << 27) - 2, 1 << 40, 0, 0, 0, second))
with open("expected.txt", "w", encoding="utf-8") as file:
    file.write("".join(line + "\n" for line in lines))
