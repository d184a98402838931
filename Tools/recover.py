#!/usr/bin/env python3
"""Reads a sandboxctl repository without sandboxctl: lists, verifies, restores.

Requires Python 3.8 or later with its standard library, the program zstd, and Linux. Encrypted
repositories are decrypted here, large objects by the program age if it is installed, which is much
faster. This program is an independent implementation of docs/repository-format.md and treats a
repository as untrusted: it refuses everything that the document requires a reader to refuse, limits
its memory use, follows no links, and writes only to the directory given with --to.

Do not run a copy from a repository that you do not trust: use the one in sandboxctl's sources.
"""

import argparse
import array
import base64
import collections
import datetime
import errno
import fcntl
import functools
import getpass
import hashlib
import hmac
import itertools
import json
import mmap
import os
import re
import resource
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# The limits of docs/repository-format.md, "What a reader refuses".
BLOB_LIMIT = 8 * MIB
FRAME_LIMIT = 16 * MIB
STORED_LIMIT = FRAME_LIMIT + FRAME_LIMIT // 128
CONTENTS_LIMIT = 16 * MIB
INDEX_LIMIT = GIB
SNAPSHOT_LIMIT = 64 * MIB
CONFIGURATION_LIMIT = MIB
MEMBER_LIMIT = MIB
PATH_LIMIT = 64 * KIB
DEPTH_LIMIT = 4096
PAGE_LIMIT = 16384
EXTENT_LIMIT = 256
PACK_FRAMES = 16384
PACK_BLOBS = 262144

DATA, TREE, LIST = 0, 1, 2
KINDS = ("data", "tree", "list")

DONE, FAILED, USAGE, PARTLY, WRONG_KEY, DAMAGED, INTERRUPTED = 0, 1, 2, 3, 12, 13, 130


class Failure(Exception):
    """An error that ends the command; the optional second argument is a hint."""


class KeyFailure(Failure):
    """The key of an encrypted repository is wrong or missing."""


class Refused(Exception):
    """An object, or a part of one, is damaged or violates the format.

    For a range of a file, `data` contains the bytes before the damage; for a frame, the bytes
    decoded before it, which only the hashes of blobs can verify.
    """

    def __init__(self, text, data=b""):
        super().__init__(text)
        self.data = data


def blake2b(data):
    """Returns the hash of the format: BLAKE2b with 32 bytes of output and no key."""
    return hashlib.blake2b(data, digest_size=32).digest()


def shown(data):
    """Returns bytes for display: control bytes, backslashes and invalid UTF-8 are escaped."""
    text = data.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_shown_character, text))


def _shown_character(character):
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return "".join("\\x%02x" % byte for byte in character.encode("utf-8", "surrogateescape"))


def is_utf8(data):
    try:
        data.decode("utf-8")
        return True
    except UnicodeDecodeError:
        return False


def say(kind, text):
    print("recover.py: %s: %s" % (kind, text), file=sys.stderr, flush=True)


# -- Stored objects ------------------------------------------------------------------------------


class StoredFile:
    """A regular file of the repository, opened without following links or blocking on a FIFO."""

    def __init__(self, path, limit=None):
        try:
            self.descriptor = os.open(
                path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Refused("cannot be opened: %s" % error.strerror) from None
        status = os.fstat(self.descriptor)
        self.size = self.stored_size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise Refused("is not a regular file")
        if limit is not None and self.size > limit:
            self.close()
            raise Refused("has %d bytes, but at most %d are allowed" % (self.size, limit))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def read(self, offset, length):
        """Returns exactly `length` bytes."""
        data = b""
        while len(data) < length:
            try:
                piece = os.pread(self.descriptor, length - len(data), offset + len(data))
            except OSError as error:
                raise Refused("cannot be read: %s" % error.strerror, data) from None
            if not piece:
                raise Refused("ends at byte %d" % (offset + len(data)), data)
            data = data + piece if data else piece
        return data

    def hash(self):
        """Returns the hash of the whole file, read in pieces."""
        state = hashlib.blake2b(digest_size=32)
        for offset in range(0, self.size, MIB):
            state.update(self.read(offset, min(MIB, self.size - offset)))
        return state.digest()

    def content(self, object_id):
        """Returns the whole file, mapped into memory, after checking it against the object's id."""
        data = b""
        if self.size:
            try:
                data = mmap.mmap(self.descriptor, self.size, access=mmap.ACCESS_READ)
            except OSError as error:
                raise Refused("cannot be read: %s" % error.strerror) from None
        if blake2b(data).hex() != object_id:
            raise Refused("its hash does not match its name")
        return memoryview(data)

    def is_complete(self):
        """Whether the file is not known to be truncated."""
        return True

    # An encrypted file has decrypted bytes in memory.
    held = 0

    def release(self):
        pass


# -- Age: X25519, ChaCha20-Poly1305, scrypt, and the files of age-encryption.org/v1 ----------------

PIECE = 64 * KIB          # plaintext bytes in each piece of an age file
SEALED = PIECE + 16       # the same piece in the file, with its tag
AGE_HEADER_LIMIT = 64 * KIB
KEY_FILE_LIMIT = 64 * KIB
WORK_FACTOR_LIMIT = 20    # scrypt uses 2^20 KiB of memory
CURVE = (1 << 255) - 19
POLYNOMIAL = (1 << 130) - 5
LANE = 38                 # bytes for each block in the sums of Poly1305


class NoKey(Refused):
    """None of the given keys is that of a recipient of an age file."""


def x25519(scalar, point):
    """Returns the product of a scalar and a point, 32 bytes each (RFC 7748, section 5)."""
    k = int.from_bytes(scalar, "little") & (1 << 255) - 8 | 1 << 254
    u = (int.from_bytes(point, "little") & (1 << 255) - 1) % CURVE
    x2, z2, x3, z3, swap = 1, 0, u, 1, 0
    for position in range(254, -1, -1):
        bit = k >> position & 1
        if bit != swap:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a % CURVE, c * b % CURVE, a * a % CURVE, b * b % CURVE
        x3, z3 = (da + cb) ** 2 % CURVE, u * (da - cb) ** 2 % CURVE
        x2, z2 = aa * bb % CURVE, (aa - bb) * (aa + 121665 * (aa - bb)) % CURVE
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, CURVE - 2, CURVE) % CURVE).to_bytes(32, "little")


@functools.lru_cache(maxsize=32)
def lanes(count, size, value):
    """Returns a number with `count` lanes of `size` bytes that all have this value."""
    return int.from_bytes(value.to_bytes(size, "little") * count, "little")


def chacha20(key, counter, nonce, count):
    """Returns `count` blocks of the key stream (RFC 8439, section 2.4).

    All blocks are computed at once. Each of the 16 words of the state is one large number with a
    lane of 64 bits for each block. The upper half of a lane holds the carries of up to 2^32
    additions, so sums are reduced only before a rotation.
    """
    mask = lanes(count, 8, 0xFFFFFFFF)
    words = struct.unpack("<16I", b"expand 32-byte k" + key + bytes(4) + nonce)
    first = [word * lanes(count, 8, 1) for word in words]
    first[12] = int.from_bytes(struct.pack("<%dQ" % count, *range(counter, counter + count)),
                               "little")
    state = list(first)
    for _ in range(10):
        for i, j, k, m in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            a, b, c, d = state[i], state[j], state[k], state[m]
            a += b
            d = (d ^ a) & mask
            d = (d << 16 | d >> 16) & mask
            c += d
            b = (b ^ c) & mask
            b = (b << 12 | b >> 20) & mask
            a += b
            d = (d ^ a) & mask
            d = (d << 8 | d >> 24) & mask
            c += d
            b = (b ^ c) & mask
            b = (b << 7 | b >> 25) & mask
            state[i], state[j], state[k], state[m] = a, b, c, d
    stream = array.array("I", bytes(64 * count))
    for number in range(16):
        word = (state[number] + first[number]) & mask
        stream[number::16] = array.array("I", word.to_bytes(8 * count, "little"))[::2]
    return stream.tobytes()


def poly1305(key, data):
    """Returns the tag of a message for a one-time key (RFC 8439, section 2.5)."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total, position = 0, 0
    while len(data) - position >= 256:
        width = ((len(data) - position) // 16).bit_length() - 1
        powers = [r]
        for _ in range(width):
            powers.append(powers[-1] ** 2 % POLYNOMIAL)
        end = position + (16 << width)
        total = (total * powers[width] + r * folded(data[position:end], powers)) % POLYNOMIAL
        position = end
    for at in range(position, len(data), 16):
        total = (total + int.from_bytes(data[at:at + 16] + b"\1", "little")) * r % POLYNOMIAL
    return (total + int.from_bytes(key[16:], "little") & (1 << 128) - 1).to_bytes(16, "little")


def folded(data, powers):
    """Returns the polynomial of 2^n blocks, given the powers 1, 2, 4 and so on of r.

    The first half of the blocks is multiplied by a power and added to the second, all lanes at
    once, until one block is left. A lane of 304 bits is wide enough for the product of two partly
    reduced numbers.
    """
    count = len(data) // 16
    wide = bytearray(LANE * count)
    for at in range(16):
        wide[at::LANE] = data[at::16]
    wide[16::LANE] = b"\1" * count
    value = int.from_bytes(wide, "little")
    while count > 1:
        count //= 2
        bits = 8 * LANE * count
        value = (value & (1 << bits) - 1) * powers[count.bit_length() - 1] + (value >> bits)
        low = value & lanes(count, LANE, (1 << 130) - 1)
        value = low + 5 * ((value ^ low) >> 130)
    return value


def unsealed(key, nonce, sealed, associated=b""):
    """Decrypts ChaCha20-Poly1305 (RFC 8439, section 2.8), or returns None if the tag is wrong."""
    size = len(sealed) - 16
    if size < 0:
        return None
    stream = chacha20(key, 0, nonce, 1 + (size + 63) // 64)
    signed_bytes = b"".join((associated, bytes(-len(associated) % 16), sealed[:size],
                             bytes(-size % 16), struct.pack("<QQ", len(associated), size)))
    if not hmac.compare_digest(poly1305(stream[:32], signed_bytes), bytes(sealed[size:])):
        return None
    plain = int.from_bytes(sealed[:size], "little") ^ int.from_bytes(stream[64:64 + size], "little")
    return plain.to_bytes(size, "little")


def hkdf(secret, salt, purpose):
    """Returns 32 bytes of HKDF-SHA-256 (RFC 5869)."""
    return hmac.digest(hmac.digest(salt, secret, "sha256"), purpose + b"\1", "sha256")


BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def bech32_sum(name, digits):
    """Returns the checksum of Bech32 (BIP 173); 1 if the digits end with the right one."""
    total = 1
    expanded = [ord(c) >> 5 for c in name] + [0] + [ord(c) & 31 for c in name]
    for digit in expanded + digits:
        top, total = total >> 25, (total & 0x1FFFFFF) << 5 ^ digit
        for bit, generator in enumerate(
                (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            total ^= generator if top >> bit & 1 else 0
    return total


def regrouped(digits, width, wanted):
    """Regroups the bits of numbers of one width into numbers of another, padded with zeros."""
    value, count, found = 0, 0, []
    for digit in digits:
        value, count = value << width | digit, count + width
        while count >= wanted:
            count -= wanted
            found.append(value >> count & (1 << wanted) - 1)
    return found, (value << wanted - count) & (1 << wanted) - 1, count


def bech32_encode(name, data):
    digits, rest, count = regrouped(data, 8, 5)
    digits += [rest] if count else []
    check = bech32_sum(name, digits + [0] * 6) ^ 1
    digits += [check >> 5 * (5 - i) & 31 for i in range(6)]
    return name + "1" + "".join(BECH32[digit] for digit in digits)


def bech32_decode(name, text):
    """Decodes a Bech32 text that begins with this name, or returns None."""
    text = text.lower() if text.isupper() else text
    digits = [BECH32.find(character) for character in text[len(name) + 1:]]
    if not text.startswith(name + "1") or -1 in digits or bech32_sum(name, digits) != 1:
        return None
    data, rest, count = regrouped(digits[:-6], 5, 8)
    return None if rest or count >= 5 else bytes(data)


Identity = collections.namedtuple("Identity", "text secret public recipient")


def identity_of(text):
    """Returns the identity of an AGE-SECRET-KEY-1 text, or None."""
    secret = bech32_decode("age-secret-key-", text)
    if secret is None or len(secret) != 32:
        return None
    public = x25519(secret, (9).to_bytes(32, "little"))
    return Identity(text.upper(), secret, public, bech32_encode("age", public))


Stanza = collections.namedtuple("Stanza", "kind arguments body")


def decoded_base64(text):
    """Decodes base64 without padding, in its only valid form."""
    if re.fullmatch(rb"[A-Za-z0-9+/]*", text):
        try:
            data = base64.b64decode(text + b"=" * (-len(text) % 4))
            if base64.b64encode(data).rstrip(b"=") == text:
                return data
        except ValueError:
            pass
    raise Refused("its age header has invalid base64")


def read_stanzas(head):
    """Returns the stanzas of a header and its authentication code, whose line ends `head`."""
    lines = head.split(b"\n")[1:-1]
    if not re.fullmatch(rb"--- [A-Za-z0-9+/]{43}", lines[-1]):
        raise Refused("its age header does not end with an authentication code")
    stanzas, position = [], 0
    while position < len(lines) - 1:
        words = lines[position].split(b" ")
        if words[0] != b"->" or len(words) < 2 \
                or not all(re.fullmatch(rb"[!-~]+", word) for word in words):
            raise Refused("its age header has an invalid line")
        begin = position = position + 1
        while len(lines[position]) == 64:
            position += 1
        if len(lines[position]) > 64 or position == len(lines) - 1:
            raise Refused("its age header has a stanza of an invalid length")
        position += 1
        body = decoded_base64(b"".join(lines[begin:position]))
        stanzas.append(Stanza(words[1].decode(), words[2:], body))
    if not stanzas:
        raise Refused("its age header has no recipients")
    return stanzas, decoded_base64(lines[-1][4:])


def read_age_header(file):
    """Returns the bytes of a file's age header."""
    size = 4 * KIB
    while True:
        data = file.read(0, min(size, file.size, AGE_HEADER_LIMIT))
        if not data.startswith(b"age-encryption.org/v1\n"):
            raise Refused("it is not an age file of version 1")
        end = re.search(rb"\n---[^\n]*\n", data)
        if end:
            return data[:end.end()]
        if len(data) < size:
            raise Refused("its age header is incomplete")
        size *= 16


def opened_header(file, identities, passphrase=None):
    """Returns the size of an age file's header, and the file key in it."""
    head = read_age_header(file)
    stanzas, code = read_stanzas(head)
    kinds = [stanza.kind for stanza in stanzas]
    if "scrypt" in kinds and len(kinds) > 1:
        raise Refused("its age header has other recipients besides a passphrase")
    for stanza in stanzas:
        key = None
        if stanza.kind == "X25519":
            key = key_by_identity(stanza, identities)
        elif stanza.kind == "scrypt":
            key = key_by_passphrase(stanza, passphrase)
        if key is not None:
            expected = hmac.digest(hkdf(key, b"", b"header"), head[:head.rindex(b" ")], "sha256")
            if not hmac.compare_digest(code, expected):
                raise Refused("its age header does not match its authentication code")
            return len(head), key
    raise NoKey("it cannot be decrypted with the given key: it has recipients of type %s"
                % ", ".join(sorted(set(kinds)))[:80])


def key_by_identity(stanza, identities):
    share = decoded_base64(stanza.arguments[0]) if len(stanza.arguments) == 1 else b""
    if len(share) != 32 or len(stanza.body) != 32:
        raise Refused("its age header has an invalid X25519 stanza")
    for identity in identities:
        shared = x25519(identity.secret, share)
        if not any(shared):
            raise Refused("its age header has an invalid X25519 share")
        wrap = hkdf(shared, share + identity.public, b"age-encryption.org/v1/X25519")
        key = unsealed(wrap, bytes(12), stanza.body)
        if key is not None:
            return key
    return None


def key_by_passphrase(stanza, passphrase):
    salt = decoded_base64(stanza.arguments[0]) if len(stanza.arguments) == 2 else b""
    if len(salt) != 16 or len(stanza.body) != 32 \
            or not re.fullmatch(rb"[1-9][0-9]*", stanza.arguments[1]):
        raise Refused("its age header has an invalid scrypt stanza")
    if len(stanza.arguments[1]) > 2 or int(stanza.arguments[1]) > WORK_FACTOR_LIMIT:
        raise Refused("its work factor is %s, but at most %d is allowed"
                      % (stanza.arguments[1].decode()[:20], WORK_FACTOR_LIMIT))
    if passphrase is None:
        return None
    if not hasattr(hashlib, "scrypt"):
        raise Refused("this Python has no scrypt: use `age -d` to get the identity in it")
    cost = 1 << int(stanza.arguments[1])
    wrap = hashlib.scrypt(passphrase, salt=b"age-encryption.org/v1/scrypt" + salt, n=cost, r=8, p=1,
                          maxmem=1024 * (cost + 16), dklen=32)
    return unsealed(wrap, bytes(12), stanza.body)


OWN_PIECES = 16         # pieces of a file to decrypt here before starting the program age
HELD_LIMIT = 128 * MIB  # decrypted bytes of one pack, and of all other open packs together


class AgeFile:
    """The content of an age file, decrypted on demand: piece by piece here, or at once by age.

    Decrypted pieces are kept in an unnamed file in memory. Only pieces whose tag is correct are
    used. Several threads may read while frames are decoded.
    """

    def __init__(self, file, keys, passphrase=None, size=None):
        """Opens an age file. `size` is its size in an index, if known; later bytes are ignored."""
        self.file, self.keys = file, keys
        self.lock = threading.Lock()
        self.memory, self.good = -1, set()
        self.bad = {}  # the reason for each damaged piece
        self.limit, self.own_pieces = HELD_LIMIT, 0
        self.is_age_due = keys.age is not None
        self.stored_size = file.size if size is None else min(size, file.size)
        length, key = opened_header(file, keys.identities, passphrase)
        payload = self.stored_size - length - 16
        if payload < 0:
            raise Refused("its age header is not followed by a nonce")
        if payload < 16:
            raise Refused("its age payload is truncated")
        self.start = length + 16
        self.key = hkdf(key, file.read(length, 16), b"payload")
        self.count, rest = divmod(payload, SEALED)
        # Up to 16 bytes after the last piece cannot be a piece.
        self.is_followed = self.count > 0 and 0 < rest <= 16
        if rest and not self.is_followed:
            self.count += 1
        self.size = min(payload - 16 * self.count, self.count * PIECE)
        self.is_ended = False  # whether the last piece is marked as such

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with self.lock:
            self.forget()
            self.file.close()

    def hash(self):
        """Returns the hash of the stored bytes."""
        return self.file.hash()

    @property
    def held(self):
        """The number of decrypted bytes in memory."""
        return len(self.good) * PIECE

    def release(self):
        with self.lock:
            self.forget()

    def forget(self):
        if self.memory >= 0:
            os.close(self.memory)
        self.memory, self.good = -1, set()

    def is_complete(self):
        """Whether the file ends with a piece that is marked as the last one."""
        with self.lock:
            self.decrypt(self.count - 1, self.count)
            return self.is_ended and not self.is_followed

    def read(self, offset, length):
        """Returns exactly `length` bytes. A Refused has the bytes before a damaged piece."""
        end = min(offset + length, self.size)
        with self.lock:
            gap = self.decrypt(offset // PIECE, -(-end // PIECE))
            intact = end if gap is None else max(offset, min(end, gap * PIECE))
            data = os.pread(self.memory, intact - offset, offset) if intact > offset else b""
        if gap is not None:
            raise Refused(self.bad[gap], data)
        if len(data) < length:
            raise Refused("ends at byte %d" % self.size, data)
        return data

    def content(self, object_id):
        """Returns all bytes, after checking the stored bytes against the object's id."""
        if self.hash().hex() != object_id:
            raise Refused("its hash does not match its name")
        return self.whole()

    def whole(self):
        """Returns all bytes, decrypted into memory."""
        self.limit = max(self.limit, self.count * PIECE)
        with self.lock:
            gap = self.decrypt(0, self.count)
            if gap is not None:
                raise Refused(self.bad[gap])
            if not self.is_ended or self.is_followed:
                raise Refused("its age file is truncated, or other bytes follow it")
            if not self.size:
                return memoryview(b"")
            return memoryview(mmap.mmap(self.memory, self.size, access=mmap.ACCESS_READ))

    def decrypt(self, first, end):
        """Decrypts a range of pieces. Returns the number of the first damaged one, or None."""
        missing = [number for number in range(first, end) if number not in self.good]
        if not missing:
            return None
        if self.memory < 0 or self.held + len(missing) * PIECE > self.limit:
            self.forget()
            missing = list(range(first, end))
            self.memory = unnamed_file()
        if self.is_age_due and self.own_pieces + len(missing) > OWN_PIECES \
                and self.size <= max(self.limit, HELD_LIMIT):
            self.run_age()
        for number in missing:
            if number in self.bad:
                return number
            if number in self.good:
                continue
            self.own_pieces += 1
            try:
                plain = self.piece(number)
            except Refused as trouble:
                self.bad[number] = str(trouble)
                return number
            try:
                os.pwrite(self.memory, plain, number * PIECE)
            except OSError as error:
                raise Refused("cannot be decrypted into memory: %s" % error.strerror) from None
            self.good.add(number)
        return None

    def piece(self, number):
        """Decrypts a piece. In a truncated file, the last piece is not marked as the last; a marked
        piece may be followed by other bytes."""
        at = self.start + number * SEALED
        sealed = self.file.read(at, min(SEALED, self.stored_size - at))
        counter, is_last = number.to_bytes(11, "big"), number == self.count - 1
        marks = (b"\1", b"\0") if is_last else (b"\0", b"\1")
        for mark in marks if len(sealed) == SEALED else marks[:1]:
            plain = unsealed(self.key, counter + mark, sealed)
            if plain is not None:
                self.is_ended = self.is_ended or is_last and mark == b"\1"
                self.is_followed = self.is_followed or not is_last and mark == b"\1"
                return plain
        raise Refused("its decrypted bytes from %d to %d do not match their tag"
                      % (number * PIECE, number * PIECE + len(sealed) - 17))

    def run_age(self):
        """Decrypts the whole file with the program age, or the part before the first damage.

        The identity is passed through a pipe, so it is in no argument and no file.
        """
        self.is_age_due = False
        reading, writing = os.pipe()
        try:
            os.write(writing, "".join(key.text + "\n" for key in self.keys.identities).encode())
            os.close(writing)
            for descriptor in (self.file.descriptor, self.memory):
                os.lseek(descriptor, 0, os.SEEK_SET)
            code = subprocess.call(
                [self.keys.age, "-d", "-i", "/dev/fd/%d" % reading], stdin=self.file.descriptor,
                stdout=self.memory, stderr=subprocess.DEVNULL, pass_fds=(reading,))
        except OSError as error:
            say("note", "cannot run %s: %s" % (self.keys.age, error.strerror))
            return
        finally:
            os.close(reading)
        size = os.lseek(self.memory, 0, os.SEEK_CUR)
        if code == 0 and size == self.size:
            self.is_ended = True
            self.is_age_due = True  # again, if the memory is released
            self.good = set(range(self.count))
        else:
            self.good.update(range(min(size // PIECE, self.count)))


def unnamed_file():
    """Returns the descriptor of an unnamed file, in memory if the system supports that."""
    try:
        if hasattr(os, "memfd_create"):
            return os.memfd_create("recover.py")
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    except OSError as error:
        raise Refused("cannot be decrypted into memory: %s" % error.strerror) from None


# -- The repository -------------------------------------------------------------------------------

Frame = collections.namedtuple("Frame", "number offset stored decoded")


class Repository:
    """A repository directory: its configuration, the names of its objects, its packs."""

    def __init__(self, path, zstd):
        self.path = os.fsencode(path)
        self.zstd = zstd
        self.id, self.recipients, self.is_encrypted = None, [], False
        self.keys = None
        self.reported = set()  # directories with objects that are not encrypted
        self.read_configuration()
        self.ending = ".age" if self.is_encrypted else ""
        self.open_packs = collections.OrderedDict()

    def read_configuration(self):
        path = os.path.join(self.path, b"repository.json")
        if not os.path.lexists(path):
            if all(os.path.isdir(os.path.join(self.path, name))
                   for name in (b"packs", b"snapshots")):
                say("warning", "repository.json is missing; continuing without it")
                self.is_encrypted = bool(
                    self.key_files() or self.names(b"snapshots", rb"[0-9a-f]{64}\.json\.age"))
                return
            raise Failure("no repository at %s: repository.json is missing"
                          % shown(self.path), "use the directory with packs/ and snapshots/")
        try:
            with StoredFile(path, CONFIGURATION_LIMIT) as file:
                text = file.read(0, file.size).decode("utf-8")
            value = json.loads(text, object_pairs_hook=without_twins)
        except (Refused, ValueError, RecursionError) as error:
            raise Failure("repository.json is damaged: %s" % error,
                          "move it away to continue without it") from None
        check_configuration(value)
        self.id, self.recipients = value["id"], value["recipients"]
        self.is_encrypted = value["encryption"] == "age"

    def names(self, directory, pattern):
        """Returns the names in a directory that match a pattern; others are ignored."""
        form = re.compile(pattern)
        try:
            with os.scandir(os.path.join(self.path, directory)) as entries:
                return sorted(entry.name for entry in entries if form.fullmatch(entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Failure("%s cannot be listed: %s" % (shown(directory), error.strerror)) from None

    def key_files(self):
        form = rb"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\.age"
        return [os.fsdecode(name) for name in self.names(b"keys", form)]

    def snapshots(self):
        names = self.names(b"snapshots", rb"[0-9a-f]{64}\.json(\.age)?")
        return [name[:64].decode() for name in self.objects("snapshots", names)]

    def indexes(self):
        names = self.names(b"index", rb"[0-9a-f]{64}\.index(\.age)?")
        return [name[:64].decode() for name in self.objects("index", names)]

    def packs(self):
        """Yields the ids of all packs, directory by directory."""
        for directory in self.names(b"packs", rb"[0-9a-f]{2}"):
            form = directory + rb"[0-9a-f]{62}\.tar\.zst(\.age)?"
            names = self.names(b"packs/" + directory, form)
            for name in self.objects("packs/" + directory.decode(), names):
                yield name[:64].decode()

    def objects(self, directory, names):
        """Returns the names that end as those of this repository's objects. In an encrypted
        repository the others are reported, because another user may have placed them there."""
        found = [name for name in names if name.endswith(b".age") == self.is_encrypted]
        if self.is_encrypted and len(found) < len(names) and directory not in self.reported:
            self.reported.add(directory)
            other = next(name for name in names if not name.endswith(b".age"))
            say("note", "%s/%s is ignored, since it is not encrypted%s" % (
                directory, other.decode(), " (%d such files)" % (len(names) - len(found))
                if len(names) - len(found) > 1 else ""))
        return found

    def object_path(self, *parts):
        return os.path.join(self.path, *(os.fsencode(part) for part in parts))

    def pack_path(self, pack_id):
        return self.object_path("packs", pack_id[:2], pack_id + ".tar.zst" + self.ending)

    def open(self, path, limit=None, size=None):
        """Opens an object. An encrypted one is decrypted on demand."""
        if not self.is_encrypted:
            return StoredFile(path, limit)
        file = StoredFile(path, limit and limit + limit // 1024 + AGE_HEADER_LIMIT)
        try:
            found = AgeFile(file, self.keys, size=size)
            if limit is not None and found.size > limit:
                raise Refused("has %d bytes, but at most %d are allowed" % (found.size, limit))
            return found
        except Refused:
            file.close()
            raise

    def open_snapshot(self, snapshot_id):
        path = self.object_path("snapshots", snapshot_id + ".json" + self.ending)
        return self.open(path, SNAPSHOT_LIMIT)

    def open_index(self, index_id):
        path = self.object_path("index", index_id + ".index" + self.ending)
        return self.open(path, INDEX_LIMIT)

    def open_pack(self, pack_id, size=None):
        """Opens a pack. With its size from an index, it can be read even if other bytes follow."""
        return self.open(self.pack_path(pack_id), size=size)

    def pack(self, pack_id, size):
        """Returns an open pack. The most recently used packs stay open."""
        file = self.open_packs.get(pack_id)
        if file is None:
            file = self.open_pack(pack_id, size)
            self.open_packs[pack_id] = file
            if len(self.open_packs) > 32:
                self.open_packs.popitem(last=False)[1].close()
        self.open_packs.move_to_end(pack_id)
        held = sum(other.held for other in self.open_packs.values())
        for other in self.open_packs.values():
            if held > HELD_LIMIT and other is not file:
                held -= other.held
                other.release()
        return file


def without_twins(members):
    """Builds a JSON object and refuses duplicate names."""
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("duplicate name in an object")
    return found


def check_configuration(value):
    """Refuses values that version 1 does not support, naming the member."""
    if not isinstance(value, dict):
        raise Failure("repository.json is damaged: it is not an object")
    known = {"format": "sandboxctl-repository", "version": 1, "hash": "blake2b-256",
             "compression": "zstd", "encryption": "none", "recipients": []}
    if value.get("encryption") == "age":
        known["encryption"] = "age"
        del known["recipients"]
        if not are_recipients(value.get("recipients")):
            raise Failure("repository.json is damaged: encryption is \"age\", but recipients is %s"
                          % json.dumps(value.get("recipients"))[:80],
                          "move it away to continue without it")
    for member, wanted in known.items():
        found = value.get(member)
        if type(found) is not type(wanted) or found != wanted:
            raise Failure("repository.json: %s is %s, but this program supports only %s"
                          % (member, json.dumps(found)[:80], json.dumps(wanted)),
                          "use the recover.py of the version that wrote it")
    if not isinstance(value.get("id"), str) or not re.fullmatch("[0-9a-f]{64}", value["id"]):
        raise Failure("repository.json is damaged: id is not 64 hexadecimal digits")
    features = value.get("features")
    words = features.get("read") if isinstance(features, dict) else None
    if not isinstance(words, list):
        raise Failure("repository.json is damaged: features.read is not an array")
    if words:
        raise Failure("repository.json: reading requires %s, which this program does not support"
                      % json.dumps(words)[:80], "use the recover.py of the version that wrote it")


def are_recipients(value):
    """Whether a value is an array of age recipients, which are safe to print."""
    return isinstance(value, list) and value != [] and all(
        isinstance(item, str) and re.fullmatch("age1[0-9a-z]{1,4000}", item) for item in value)


# -- Keys -----------------------------------------------------------------------------------------

Keys = collections.namedtuple("Keys", "identities age")  # `age` is the program's path, or None


def unlock(repository, options):
    """Returns the keys of an encrypted repository, by an identity or a passphrase."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if options.identity is not None:
        identities = read_identities(options.identity)
    else:
        identities = identities_by_passphrase(repository, options.passphrase_file)
    keys = Keys(identities, None if options.no_age else shutil.which("age"))
    listed = [key for key in identities if key.recipient in repository.recipients]
    if listed:
        # Identities from before a rotation decrypt older objects.
        others = [key for key in identities if key not in listed]
        return keys._replace(identities=listed + others)
    if not opens_objects(repository, keys):
        raise KeyFailure("wrong key: the identity is that of the recipient%s %s" % (
            "" if len(identities) == 1 else "s", ", ".join(key.recipient for key in identities)),
            "%s; give the identity of one of them" % recipients_of(repository))
    if repository.recipients:
        say("warning", "the key is not one of the current recipients; objects that were written "
            "after it was removed cannot be decrypted")
    return keys


def recipients_of(repository):
    """Returns a sentence about the recipients of a repository."""
    if repository.recipients:
        return "the recipients of the repository are %s" % ", ".join(repository.recipients)
    return "repository.json, which has the recipients, is missing"


def opens_objects(repository, keys):
    """Whether a key that is not that of a listed recipient decrypts a snapshot or a pack; also true
    if the repository has neither."""
    repository.keys = keys
    is_tried = False
    for ids, open_one in ((repository.snapshots(), repository.open_snapshot),
                          (repository.packs(), repository.open_pack)):
        for object_id in itertools.islice(ids, 64):
            try:
                open_one(object_id).close()
                return True
            except NoKey:
                is_tried = True
            except Refused:
                pass
    return not is_tried


def read_secret_file(path):
    """Returns the bytes of a file with a key or a passphrase."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(KEY_FILE_LIMIT + 1)
    except OSError as error:
        raise Failure("%s cannot be read: %s" % (path, error.strerror)) from None
    if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
        say("warning", "other users can read %s: use `chmod 600`" % path)
    if len(data) > KEY_FILE_LIMIT:
        raise Failure("%s has more than %d bytes" % (path, KEY_FILE_LIMIT))
    return data


def read_identities(path):
    """Returns the X25519 identities of a file: one in each line; comments begin with `#`."""
    data = read_secret_file(path)
    if data.startswith((b"age-encryption.org/", b"-----BEGIN AGE")):
        raise KeyFailure("%s is encrypted" % path, "decrypt it first: `age -d %s`" % path)
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        identity = identity_of(line)
        if identity is not None:
            found.append(identity)
        elif re.match("AGE-(PLUGIN|SECRET-KEY-PQ)-", line, re.IGNORECASE):
            say("note", "%s: line %d is ignored: only X25519 identities are supported"
                % (path, number))
        else:
            raise KeyFailure("%s: line %d is not an age identity" % (path, number),
                             "an identity begins with AGE-SECRET-KEY-1 and has 74 characters")
    if not found:
        raise KeyFailure("%s contains no identity" % path,
                         "an identity begins with AGE-SECRET-KEY-1 and has 74 characters")
    return found


def identities_by_passphrase(repository, path):
    """Returns the identities, newest first, in the first key file that the passphrase opens."""
    names = repository.key_files()
    if not names:
        raise KeyFailure("the repository is encrypted, and keys/ contains no key file",
                         "use --identity with the recovery key; %s" % recipients_of(repository))
    if path is not None:
        passphrase = re.sub(rb"\r?\n\Z", b"", read_secret_file(path))
        if not passphrase or b"\n" in passphrase:
            raise KeyFailure("%s does not contain one line with a passphrase" % path)
        found = open_key_files(repository, names, passphrase)
    elif sys.stdin.isatty():
        found = None
        for _ in range(3):
            try:
                passphrase = getpass.getpass("passphrase of the repository: ")
            except EOFError:
                raise KeyFailure("no passphrase is given") from None
            found = passphrase and open_key_files(
                repository, names, passphrase.encode("utf-8", "surrogateescape"))
            if found:
                break
            say("error", "wrong passphrase")
    else:
        raise KeyFailure("the repository is encrypted, and no key is given",
                         "use --identity or --passphrase-file; %s" % recipients_of(repository))
    if not found:
        raise KeyFailure("wrong passphrase: it opens no key file in keys/",
                         "use another passphrase, or --identity; %s" % recipients_of(repository))
    return found


def open_key_files(repository, names, passphrase):
    for name in names:
        try:
            with StoredFile(repository.object_path("keys", name), KEY_FILE_LIMIT) as stored, \
                    AgeFile(stored, Keys([], None), passphrase) as file:
                return read_key(file.whole(), repository)
        except NoKey:
            pass
        except Refused as trouble:
            say("warning", "keys/%s: %s" % (name, trouble))
    return None


def read_key(data, repository):
    """Returns the identities in the content of a key file: the current one, then older ones."""
    try:
        value = json.loads(bytes(data).decode("utf-8"), object_pairs_hook=without_twins)
    except (ValueError, RecursionError) as error:
        raise Refused("it is not JSON: %s" % error) from None
    if not isinstance(value, dict) or value.get("format") != "sandboxctl-key":
        raise Refused("it is not a key of sandboxctl")
    if type(value.get("version")) is not int or value["version"] != 1:
        raise Refused("it has version %s, but this program supports only 1"
                      % json.dumps(value.get("version"))[:40])
    if repository.id is not None and value.get("repository") != repository.id:
        raise Refused("it belongs to another repository")
    older = value.get("older", [])
    texts = [value.get("identity")] + (older if isinstance(older, list) else [None])
    identities = [identity_of(text) if isinstance(text, str) else None for text in texts]
    if None in identities:
        raise Refused("it has no X25519 identity")
    return identities


# -- Frames ---------------------------------------------------------------------------------------


def check_frame_head(file, frame):
    """Refuses a frame with a missing or different size before memory is allocated."""
    head = file.read(frame.offset, min(18, frame.stored))
    if len(head) < 6 or head[:4] != b"\x28\xb5\x2f\xfd":
        raise Refused("frame %d is not a zstd frame" % frame.number)
    flags = head[4]
    single, width = flags & 0x20, (0, 2, 4, 8)[flags >> 6]
    if single and not width:
        width = 1
    if flags & 0x0B or not flags & 0x04 or not width:
        raise Refused("frame %d uses a dictionary, or has no checksum or size" % frame.number)
    start = 5 if single else 6
    size = int.from_bytes(head[start:start + width], "little") + (256 if width == 2 else 0)
    if len(head) < start + width or size != frame.decoded:
        raise Refused("frame %d claims %d bytes, the table %d"
                      % (frame.number, size, frame.decoded))
    if not single:
        window = 1 << (10 + (head[5] >> 3))
        window += (window >> 3) * (head[5] & 7)
        if window > FRAME_LIMIT:
            raise Refused("frame %d requires a window of %d bytes" % (frame.number, window))


class Decoding:
    """A zstd process that decodes frames of a pack, one after the other.

    Success is known only after the last frame: `ended_well`. Until then each blob is verified by
    its hash.
    """

    def __init__(self, zstd, file, frames, checks=True):
        self.frames, self.checks = frames, checks
        self.ended_well = False
        self.rest = b""  # the decoded bytes of the incomplete frame
        self.trouble = None  # the error of reading the stored bytes
        try:
            self.process = subprocess.Popen(
                [zstd, "-d", "-c", "-q", "--memory=32MB"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, close_fds=True)
        except OSError as error:
            raise Failure("cannot run %s: %s" % (zstd, error.strerror),
                          "install the package zstd, or use --zstd") from None
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                fcntl.fcntl(pipe, 1031, MIB)  # F_SETPIPE_SZ
            except OSError:
                pass
        self.feeder = threading.Thread(target=self.feed, args=(file,), daemon=True)
        self.feeder.start()

    def feed(self, file):
        try:
            with self.process.stdin as pipe:
                for frame in self.frames:
                    start, end = frame.offset, frame.offset + frame.stored
                    if not self.checks:
                        # The checksum is removed: zstd drops the last block if it is wrong.
                        pipe.write(without_checksum(file.read(start, 5)))
                        start, end = start + 5, end - 4
                    for offset in range(start, end, MIB):
                        self.feed_range(pipe, file, offset, min(MIB, end - offset))
        except (OSError, ValueError, Refused):
            pass  # detected by the reading side

    def feed_range(self, pipe, file, offset, length):
        """Feeds a range of the file, or its bytes before a damaged one."""
        try:
            pipe.write(file.read(offset, length))
        except Refused as trouble:
            self.trouble = str(trouble)
            pipe.write(trouble.data)
            raise

    def __iter__(self):
        """Yields each frame with its bytes, up to the first incomplete one."""
        try:
            for frame in self.frames:
                data = self.process.stdout.read(frame.decoded)
                if len(data) != frame.decoded:
                    self.rest = data
                    return
                yield frame, data
            if not self.process.stdout.read(1):
                self.ended_well = self.process.wait() == 0
        finally:
            self.process.kill()
            self.process.wait()
            self.feeder.join()
            self.process.stdout.close()


def decode_alone(repository, file, frame):
    """Decodes one frame, verified by its checksum and its size."""
    check_frame_head(file, frame)
    decoding = Decoding(repository.zstd, file, [frame])
    found = [data for _, data in decoding]
    if decoding.ended_well:
        return found[0]
    decoding = Decoding(repository.zstd, file, [frame], checks=False)
    found = [data for _, data in decoding]
    reason = ": %s" % decoding.trouble if decoding.trouble else ""
    raise Refused("frame %d cannot be decoded%s" % (frame.number, reason),
                  found[0] if found else decoding.rest)


def without_checksum(head):
    """Returns the first five bytes of a frame with the checksum flag cleared (RFC 8878,
    3.1.1.1.1)."""
    return head[:4] + bytes([head[4] & ~4])


def decode(repository, file, frames):
    """Yields each frame with its bytes or its error. A damaged frame does not affect others."""
    sound = []
    for frame in frames:
        try:
            check_frame_head(file, frame)
            sound.append(frame)
        except Refused as trouble:
            yield from decode_sound(repository, file, sound)
            sound = []
            yield frame, trouble
    yield from decode_sound(repository, file, sound)


def decode_sound(repository, file, frames):
    """Decodes frames with valid headers: many in one process, but a frame at which it fails
    alone."""
    done = 0
    while done < len(frames):
        if done + 1 < len(frames):
            for found in Decoding(repository.zstd, file, frames[done:]):
                done += 1
                yield found
        if done < len(frames):
            frame = frames[done]
            done += 1
            try:
                yield frame, decode_alone(repository, file, frame)
            except Refused as trouble:
                yield frame, trouble


# -- The tables at the end of a pack --------------------------------------------------------------


def read_seek_table(file):
    """Returns a pack's frames, from the seek table at its end."""
    if not file.is_complete():
        raise Refused("its end is damaged or missing")
    if file.size < 17:
        raise Refused("has no seek table")
    count, flags, magic = struct.unpack("<IBI", file.read(file.size - 9, 9))
    length = 8 * count + 17
    if magic != 0x8F92EAB1 or flags:
        raise Refused("has no seek table")
    if not 1 <= count <= PACK_FRAMES or length > file.size:
        raise Refused("its seek table claims %d frames" % count)
    table = file.read(file.size - length, length)
    if struct.unpack_from("<II", table) != (0x184D2A5E, length - 8):
        raise Refused("the size of its seek table is wrong")
    frames, offset = [], 0
    for number, (stored, decoded) in enumerate(struct.iter_unpack("<II", table[8:-9])):
        if not 1 <= stored <= STORED_LIMIT or not 1 <= decoded <= FRAME_LIMIT:
            raise Refused("frame %d claims %d bytes, stored in %d" % (number, decoded, stored))
        frames.append(Frame(number, offset, stored, decoded))
        offset += stored
    if offset != file.size - length:
        raise Refused("its frames do not end at its seek table")
    return frames


ENTRY = struct.Struct("<32sIHBBII")


def read_contents(data, frames):
    """Returns the blob entries in a pack's last frame, encoded."""
    name, size = member_head(data, 0)
    if name != b".sandboxctl/contents" or size > CONTENTS_LIMIT or len(data) < 512 + size:
        raise Refused("its last frame does not contain its contents table")
    table = data[512:512 + size]
    if size < 32 or table[16:24] != b"sbxpack\0":
        raise Refused("its contents table is invalid")
    version, count = struct.unpack_from("<II", table, 24)
    if version != 1:
        raise Refused("its contents table has version %d, but this program supports only 1"
                      % version)
    if count > PACK_BLOBS or size != 32 + 48 * count:
        raise Refused("its contents table claims %d entries, but has %d bytes" % (count, size))
    entries, last = table[32:], (-1, 0)
    for _, pack, frame, kind, flags, offset, length in ENTRY.iter_unpack(entries):
        if pack or flags or kind > LIST:
            raise Refused("its contents table has an entry of kind %d, pack %d, flags %d"
                          % (kind, pack, flags))
        if not 1 <= length <= BLOB_LIMIT or frame >= len(frames) - 1 \
                or offset + length > frames[frame].decoded:
            raise Refused("its contents table has a blob outside its frame")
        if (frame, offset) < last:
            raise Refused("its contents table is out of order")
        last = (frame, offset + length)
    return entries


def member_head(data, position):
    """Returns a tar member's name and size, from its header."""
    head = data[position:position + 512]
    if len(head) < 512 or head[257:262] != b"ustar":
        raise Refused("no tar header at byte %d of the frame" % position)
    try:
        size, recorded = int(head[124:135], 8), int(head[148:154], 8)
    except ValueError:
        raise Refused("the tar header at byte %d has no size" % position) from None
    if recorded != sum(head) - sum(head[148:156]) + 8 * 32:
        raise Refused("the tar header at byte %d has a wrong checksum" % position)
    return head[:100].rstrip(b"\0"), size


def read_members(data, is_last):
    """Returns the ranges of member content in a frame; refuses a frame with incomplete members."""
    locations, position, size = [], 0, len(data)
    while position < size:
        if is_last and not any(data[position:position + 1024]):
            if size - position < 1024:
                raise Refused("the archive does not end with two blocks of zeros")
            return locations
        _, length = member_head(data, position)
        end = position + 512 + length
        locations.append((position + 512, end))
        position = end + -length % 512
    if position != size or is_last:
        raise Refused("a frame contains incomplete members")
    return locations


# -- Index ----------------------------------------------------------------------------------------

Place = collections.namedtuple("Place", "pack frame offset length")


class Table:
    """The locations of blobs: the three tables of an index object, validated before use.

    The entries stay encoded, with 48 bytes for each blob. A table of 65,537 positions for each kind
    narrows a search to a few entries.
    """

    def __init__(self, packs, frames, entries, counts):
        self.packs, self.frames, self.entries = packs, frames, entries
        self.check_packs()
        self.starts = []
        position = 0
        for kind, count in enumerate(counts):
            self.starts.append(self.check_entries(kind, position, count))
            position += count

    def check_packs(self):
        self.frame_counts, self.firsts = array.array("I"), array.array("I")
        self.decoded = array.array("I")
        following = 0
        for _, size, first, count in struct.iter_unpack("<32sQII", self.packs):
            if first != following or count > PACK_FRAMES or first + count > len(self.frames) // 16:
                raise Refused("its frames do not match its packs")
            following += count
            self.frame_counts.append(count)
            self.firsts.append(first)
            self.check_frames(first, count, size)
        if following != len(self.frames) // 16:
            raise Refused("it has frames without a pack")

    def check_frames(self, first, count, size):
        end = 0
        view = self.frames[16 * first:16 * (first + count)]
        for offset, stored, decoded in struct.iter_unpack("<QII", view):
            if offset < end or offset + stored > size or not stored:
                raise Refused("a frame overlaps another or is outside its pack")
            if not 1 <= decoded <= FRAME_LIMIT or stored > STORED_LIMIT:
                raise Refused("a frame claims %d bytes, stored in %d" % (decoded, stored))
            end = offset + stored
            self.decoded.append(decoded)

    def check_entries(self, kind, start, count):
        """Validates the entries of a kind. Returns the position of the first entry for each 16-bit
        hash prefix."""
        slots = array.array("I", bytes(4 * 65537))
        pack_count, previous = len(self.frame_counts), (b"", 0)
        frame_counts, firsts, decoded = self.frame_counts, self.firsts, self.decoded
        view = self.entries[48 * start:48 * (start + count)]
        for digest, pack, frame, found, flags, offset, length in ENTRY.iter_unpack(view):
            if (digest, pack) <= previous:
                raise Refused("its entries are out of order or duplicate")
            if found != kind or flags:
                raise Refused("an entry has kind %d and flags %d among those of kind %s"
                              % (found, flags, KINDS[kind]))
            if pack >= pack_count or frame >= frame_counts[pack]:
                raise Refused("an entry refers to a missing pack or frame")
            if not 1 <= length <= BLOB_LIMIT or offset + length > decoded[firsts[pack] + frame]:
                raise Refused("an entry is outside its frame")
            slots[(digest[0] << 8 | digest[1]) + 1] += 1
            previous = (digest, pack)
        slots[0] = start
        return array.array("I", itertools.accumulate(slots))

    def fan_out(self, kind, bits):
        """Returns the fan-out table of a kind as an index object stores it."""
        starts = self.starts[kind]
        step = 65536 >> bits
        return array.array("I", (starts[slot] - starts[0] for slot in range(step, 65537, step)))

    def find(self, kind, digest):
        """Yields the locations of a blob: one in each pack that contains it."""
        starts, entries = self.starts[kind], self.entries
        slot = digest[0] << 8 | digest[1]
        low, high = starts[slot], starts[slot + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if bytes(entries[48 * middle:48 * middle + 32]) < digest:
                low = middle + 1
            else:
                high = middle
        for number in range(low, end):
            found, pack, frame, _, _, offset, length = ENTRY.unpack_from(entries, 48 * number)
            if found != digest:
                return
            yield Place(pack, frame, offset, length)

    def entry(self, number):
        """Returns a blob entry as in a pack's contents table: without the pack's number."""
        entry = bytes(self.entries[48 * number:48 * number + 48])
        return entry[:32] + bytes(4) + entry[36:]

    def entries_by_pack(self):
        """Yields each pack with the numbers of its entries."""
        starts = array.array("I", bytes(4 * len(self.frame_counts) + 8))
        for found in ENTRY.iter_unpack(self.entries):
            starts[found[1] + 2] += 1
        starts = array.array("I", itertools.accumulate(starts))
        numbers = array.array("I", bytes(len(self.entries) // 12))
        for number, found in enumerate(ENTRY.iter_unpack(self.entries)):
            numbers[starts[found[1] + 1]] = number
            starts[found[1] + 1] += 1
        for pack in range(len(self.frame_counts)):
            yield pack, numbers[starts[pack]:starts[pack + 1]]

    def pack_id(self, pack):
        return bytes(self.packs[48 * pack:48 * pack + 32]).hex()

    def pack_size(self, pack):
        return struct.unpack_from("<Q", self.packs, 48 * pack + 32)[0]

    def frame(self, pack, number):
        at = 16 * (self.firsts[pack] + number)
        return Frame(number, *struct.unpack_from("<QII", self.frames, at))


def read_index(repository, index_id):
    """Reads an index object: maps it, checks it against its id and validates it."""
    with repository.open_index(index_id) as file:
        data = file.content(index_id)
    if len(data) < 64:
        raise Refused("it has %d bytes" % len(data))
    version, packs, frames, blobs = struct.unpack_from("<4I", data, 8)
    if data[:8] != b"sbxindex":
        raise Refused("it does not begin with sbxindex")
    if version != 1:
        raise Refused("it has version %d, but this program supports only 1" % version)
    counts, bits = struct.unpack_from("<3I", data, 24), tuple(data[36:39])
    if sum(counts) != blobs or any(data[39:64]):
        raise Refused("its header is inconsistent")
    for count, width in zip(counts, bits):
        if width != next(n for n in range(17) if n == 16 or 16 << n >= count):
            raise Refused("its fan-out has %d bits for %d blobs" % (width, count))
    ends = list(itertools.accumulate(
        [64, 48 * packs, 16 * frames] + [4 << width for width in bits] + [48 * blobs]))
    if ends[-1] != len(data):
        raise Refused("it has %d bytes, but its tables have %d" % (len(data), ends[-1]))
    table = Table(data[64:ends[1]], data[ends[1]:ends[2]], data[ends[5]:], counts)
    for kind, width in enumerate(bits):
        stored = array.array("I", bytes(data[ends[2 + kind]:ends[3 + kind]]))
        if sys.byteorder == "big":
            stored.byteswap()
        if stored != table.fan_out(kind, width):
            raise Refused("its fan-out of kind %s does not match its entries" % KINDS[kind])
    return table


def rebuild_tables(repository, damage, named=()):
    """Rebuilds index tables from the contents tables of all packs except the named ones."""
    builder = TableBuilder()
    for pack_id in repository.packs():
        if pack_id in named:
            continue
        try:
            with repository.open_pack(pack_id) as file:
                frames = read_seek_table(file)
                contents = read_contents(decode_alone(repository, file, frames[-1]), frames)
                builder.add(pack_id, file.stored_size, frames, contents)
        except Refused as trouble:
            damage("pack %s: %s" % (pack_id, trouble))
        if builder.is_full:
            yield builder.table()
            builder = TableBuilder()
    yield builder.table()


class TableBuilder:
    """Combines the contents tables of packs into one table of about a million blobs."""

    def __init__(self):
        self.packs, self.frames, self.entries = bytearray(), bytearray(), []

    @property
    def is_full(self):
        return len(self.entries) > 750000

    def add(self, pack_id, size, frames, contents):
        number = len(self.packs) // 48
        self.packs += struct.pack(
            "<32sQII", bytes.fromhex(pack_id), size, len(self.frames) // 16, len(frames))
        for frame in frames:
            self.frames += struct.pack("<QII", frame.offset, frame.stored, frame.decoded)
        packed = struct.pack(">I", number)
        for at in range(0, len(contents), 48):
            self.entries.append(contents[at + 38:at + 39] + contents[at:at + 32] + packed
                                + contents[at + 36:at + 48])

    def table(self):
        self.entries.sort()
        counts, kept, previous = [0, 0, 0], bytearray(), b""
        for entry in self.entries:
            if entry[:37] != previous:  # a blob may be in several packs
                previous = entry[:37]
                counts[entry[0]] += 1
                kept += entry[1:33] + entry[36:32:-1] + entry[37:]
        return Table(*(memoryview(bytes(part)) for part in (self.packs, self.frames, kept)), counts)


class Blobs:
    """Finds and reads blobs. Each is verified by its hash before its bytes are used."""

    def __init__(self, repository, without_index, damage, rescues=False):
        self.repository, self.damage = repository, damage
        self.rescues = rescues and not without_index  # whether packs may add unindexed blobs
        self.frames = FrameCache()
        self.tables = []
        self.bad = set()     # (pack, frame, offset) of blobs found damaged
        self.present = None  # the existing packs, once they are listed
        if without_index:
            self.tables = list(rebuild_tables(repository, damage))
            return
        for index_id in repository.indexes():
            try:
                self.tables.append(read_index(repository, index_id))
            except Refused as trouble:
                damage("index %s: %s" % (index_id, trouble))

    def locations(self, kind, digest, length=None):
        """Yields each recorded location of the blob with its table, except damaged ones."""
        yield from self.locations_in(self.tables, kind, digest, length)
        if self.rescues:
            yield from self.locations_in(self.rescue(), kind, digest, length)

    def rescue(self):
        """Adds the contents tables of unindexed packs, once. Returns the new tables."""
        self.rescues = False
        named = {table.pack_id(pack) for table in self.tables
                 for pack in range(len(table.frame_counts))}
        if named.issuperset(self.repository.packs()):
            return []
        say("note", "searching the contents tables of unindexed packs")
        found = list(rebuild_tables(self.repository, self.damage, named))
        self.tables = self.tables + found
        return found

    def locations_in(self, tables, kind, digest, length):
        for table in tables:
            for location in table.find(kind, digest):
                if (length is None or location.length == length) \
                        and (self.present is None or self.is_sound(table, location)):
                    yield table, location

    def is_sound(self, table, location):
        pack_id = table.pack_id(location.pack)
        return pack_id in self.present and (pack_id, *location[1:3]) not in self.bad

    def read(self, kind, digest, length=None):
        """Returns a blob's bytes. The frames around it are cached for its neighbours."""
        trouble = None
        for table, location in self.locations(kind, digest):
            if length is not None and location.length != length:
                trouble = Refused("blob %s has %d bytes, not %d"
                                  % (digest.hex(), location.length, length))
                continue
            trouble = Refused("pack %s, frame %d: blob %s does not match its hash"
                              % (table.pack_id(location.pack), location.frame, digest.hex()))
            try:
                frame = self.frame(table, location)
            except Refused as found:
                trouble = Refused("pack %s: %s" % (table.pack_id(location.pack), found))
                frame = found.data
            data = frame[location.offset:location.offset + location.length]
            if blake2b(data) == digest:
                return data
        raise trouble or self.reason_missing(kind, digest, length)

    def reason_missing(self, kind, digest, length=None):
        """Returns the reason why a blob has no location: it is not indexed, has another length or
        is damaged."""
        what = "blob %s of kind %s" % (digest.hex(), KINDS[kind])
        lengths = [location.length for table in self.tables
                   for location in table.find(kind, digest)]
        if not lengths:
            return Refused("%s is in no index" % what)
        if length is not None and length not in lengths:
            return Refused("%s has %d bytes, not %d" % (what, lengths[0], length))
        return Refused("%s is in no intact pack" % what)

    def frame(self, table, location):
        pack_id = table.pack_id(location.pack)
        data = self.frames.get((pack_id, location.frame))
        if data is None:
            file = self.repository.pack(pack_id, table.pack_size(location.pack))
            wanted, ahead = table.frame(location.pack, location.frame), 0
            frames = [wanted]
            for number in range(location.frame + 1, table.frame_counts[location.pack]):
                frame = table.frame(location.pack, number)
                ahead += frame.decoded
                if ahead > 2 * MIB or wanted.decoded > MIB:
                    break
                frames.append(frame)
            for frame, found in decode(self.repository, file, frames):
                if not isinstance(found, Refused):
                    self.frames.put((pack_id, frame.number), found)
                if frame is wanted:
                    data = found
            if isinstance(data, Refused):
                raise data
        return data


class Cache:
    """The most recently used values, up to a total weight."""

    def __init__(self, limit):
        self.limit, self.weight = limit, 0
        self.values = collections.OrderedDict()

    def get(self, key):
        found = self.values.get(key)
        if found is None:
            return None
        self.values.move_to_end(key)
        return found[0]

    def put(self, key, value, weight):
        if key in self.values:
            self.weight -= self.values.pop(key)[1]
        self.values[key] = (value, weight)
        self.weight += weight
        while self.weight > self.limit and len(self.values) > 1:
            self.weight -= self.values.popitem(last=False)[1][1]


class FrameCache(Cache):
    def __init__(self):
        super().__init__(48 * MIB)

    def put(self, key, value, weight=None):
        super().put(key, value, len(value))


# -- CBOR as in RFC 8949, section 4.2.1: shortest heads, definite lengths, sorted keys -------------

INTEGER, NEGATIVE, BYTES, TEXT, ARRAY, MAP = 0, 1, 2, 3, 4, 5
NESTING_LIMIT = 32


def head(data, position):
    """Returns the major type and the argument of an item, and the position after its head."""
    first = data[position]
    low = first & 31
    if low < 24:
        return first >> 5, low, position + 1
    if low > 27:
        raise Refused("CBOR: an indefinite or reserved length")
    end = position + 1 + (1 << low - 24)
    value = int.from_bytes(data[position + 1:end], "big")
    if end > len(data) or value < (24, 256, 65536, 1 << 32)[low - 24]:
        raise Refused("CBOR: a number that is truncated or not in its shortest form")
    return first >> 5, value, end


def unsigned(data, position, limit=0xFFFFFFFF):
    kind, value, position = head(data, position)
    if kind != INTEGER or value > limit:
        raise Refused("CBOR: not a number of at most %d" % limit)
    return value, position


def signed(data, position):
    kind, value, position = head(data, position)
    if kind > NEGATIVE or value >> 63:
        raise Refused("CBOR: not a number of 64 bits")
    return (value if kind == INTEGER else -1 - value), position


def byte_string(data, position, shortest, longest):
    kind, length, position = head(data, position)
    end = position + length
    if kind != BYTES or not shortest <= length <= longest or end > len(data):
        raise Refused("CBOR: not %d to %d bytes" % (shortest, longest))
    return data[position:end], end


def container(data, position, wanted):
    """Returns the number of items of an array or pairs of a map, each of which takes at least a
    byte."""
    kind, count, position = head(data, position)
    if kind != wanted or count > len(data) - position:
        raise Refused("CBOR: not %s" % ("an array" if wanted == ARRAY else "a map"))
    return count, position


def skip(data, position, depth=3):
    """Skips an item of any kind, which must be deterministic as well.

    An entry's value is nested in three others: the tree's map, its array, the entry's map.
    """
    kind, value, position = head(data, position)
    if kind in (BYTES, TEXT):
        end = position + value
        if end > len(data):
            raise Refused("CBOR: a truncated string")
        if kind == TEXT and not is_utf8(data[position:end]):
            raise Refused("CBOR: a text that is not UTF-8")
        return end
    if kind in (ARRAY, MAP):
        if depth == NESTING_LIMIT:
            raise Refused("CBOR: nested deeper than %d" % NESTING_LIMIT)
        previous = None
        for _ in range(value):
            if kind == MAP:
                key, position = signed(data, position)
                if previous is not None and (key < 0, abs(key)) <= previous:
                    raise Refused("CBOR: keys out of order")
                previous = (key < 0, abs(key))
            position = skip(data, position, depth + 1)
        return position
    if kind == 6 or kind == 7 and value not in (20, 21, 22):
        raise Refused("CBOR: a tag, a fraction or an unknown value")
    return position


# -- Trees ----------------------------------------------------------------------------------------

FILE, DIRECTORY, SYMLINK, FIFO, SOCKET, CHARACTER, BLOCK = range(7)
TYPE_BITS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR,
             stat.S_IFBLK)
DEFAULT_MODE = (0o644, 0o755, 0o777, 0o644, 0o644, 0o644, 0o644)


class Entry:
    """An entry of a tree. `content` and `attributes` stay encoded."""

    __slots__ = ("name", "type", "mode", "uid", "gid", "seconds", "nanoseconds", "size", "content",
                 "level", "subtree", "target", "major", "minor", "attributes", "flags", "group",
                 "weight")

    @property
    def time(self):
        return self.seconds * 10**9 + self.nanoseconds


def read_entry(data, position):
    """Reads an entry of a tree, validated against the table of the format."""
    begin = position
    count, position = container(data, position, MAP)
    entry = Entry()
    entry.name = entry.mode = entry.content = entry.subtree = entry.target = None
    entry.attributes = entry.group = None
    entry.type = entry.uid = entry.gid = entry.seconds = entry.nanoseconds = entry.size = 0
    entry.level = entry.major = entry.minor = entry.flags = 0
    previous = -1
    for _ in range(count):
        key, position = signed(data, position)
        if key <= previous:
            raise Refused("a key of an entry is out of order")
        previous = key
        if key > 127:
            position = skip(data, position)
        elif key == 0:
            entry.name, position = byte_string(data, position, 1, 255)
            if not is_name(entry.name):
                raise Refused("the name %s is not allowed" % shown(entry.name))
        elif key == 8:
            start, position = position, skip(data, position)
            entry.content = data[start:position]
        elif key == 10:
            entry.subtree, position = byte_string(data, position, 32, 32)
        elif key == 11:
            entry.target, position = byte_string(data, position, 1, 65536)
            if b"\0" in entry.target:
                raise Refused("a link target contains a NUL")
        elif key == 14:
            start, position = position, skip(data, position)
            entry.attributes = data[start:position]
        elif key == 16:
            entry.group, position = byte_string(data, position, 1, PATH_LIMIT)
            parts = entry.group.split(b"/")
            if len(parts) > DEPTH_LIMIT or not all(map(is_name, parts)):
                raise Refused("%s is not a valid path of a hard-link group"
                              % shown(entry.group[:80]))
        elif key == 5:
            entry.seconds, position = signed(data, position)
            refuse_default(entry.seconds, key)
        elif key in NUMBERS:
            field, limit = NUMBERS[key]
            value, position = unsigned(data, position, limit)
            refuse_default(value if key != 2 else value - DEFAULT_MODE[entry.type], key)
            setattr(entry, field, value)
        else:
            raise Refused("unknown key %d" % key)
    check_entry(entry)
    entry.weight = position - begin
    return entry, position


NUMBERS = {1: ("type", 6), 2: ("mode", 0o7777), 3: ("uid", 0xFFFFFFFF), 4: ("gid", 0xFFFFFFFF),
           6: ("nanoseconds", 999999999), 7: ("size", (1 << 63) - 1), 9: ("level", 2),
           12: ("major", 0xFFFFFFFF), 13: ("minor", 0xFFFFFFFF), 15: ("flags", 0xFFFFFFFF)}


def is_name(name):
    return 1 <= len(name) <= 255 and b"/" not in name and b"\0" not in name \
        and name not in (b".", b"..")


def refuse_default(value, key):
    if value == 0:
        raise Refused("the key %d has its default value" % key)


def check_entry(entry):
    if entry.name is None:
        raise Refused("an entry has no name")
    if entry.mode is None:
        entry.mode = DEFAULT_MODE[entry.type]
    is_file, is_device = entry.type == FILE, entry.type in (CHARACTER, BLOCK)
    if not is_file and (entry.size or entry.content or entry.level) \
            or (entry.subtree is None) == (entry.type == DIRECTORY) \
            or (entry.target is None) == (entry.type == SYMLINK) \
            or not is_device and (entry.major or entry.minor) \
            or entry.group is not None and entry.type == DIRECTORY:
        raise Refused("%s has members that its type does not allow, or lacks required ones"
                      % shown(entry.name))
    if entry.content is None:
        if entry.size or entry.level:
            raise Refused("%s has a size but no content" % shown(entry.name))
    elif is_file:
        most = BLOB_LIMIT if entry.level else EXTENT_LIMIT
        pieces = read_pieces(entry.content, 0, entry.level, most)
        total = sum(length for length, _ in pieces)
        if total != entry.size:
            raise Refused("%s has %d bytes, but its pieces have %d"
                          % (shown(entry.name), entry.size, total))
    if entry.attributes is not None:
        for _ in read_attributes(entry.attributes):
            pass


def read_pieces(data, position, level, most=BLOB_LIMIT):
    """Yields each piece of a content or list: (length, hash), where the hash of a hole is None."""
    count, position = container(data, position, ARRAY)
    if not 1 <= count <= most:
        raise Refused("content of %d pieces" % count)
    after_hole, limit = False, ((1 << 63) - 1 if level else BLOB_LIMIT)
    for _ in range(count):
        kind, value, following = head(data, position)
        if kind == INTEGER:
            if level or after_hole or not 1 <= value < 1 << 63:
                raise Refused("a hole that is not allowed")
            yield value, None
            position, after_hole = following, True
        else:
            if kind != ARRAY or value != 2:
                raise Refused("a piece that is neither a blob nor a hole")
            length, position = unsigned(data, following, limit)
            digest, position = byte_string(data, position, 32, 32)
            if not length:
                raise Refused("an empty piece")
            yield length, digest
            after_hole = False


def read_attributes(data):
    """Yields each extended attribute: (name, bytes) or (name, (length, hash))."""
    count, position = container(data, 0, ARRAY)
    if not count:
        raise Refused("an empty array of attributes")
    previous = b""
    for _ in range(count):
        pair, position = container(data, position, ARRAY)
        name, position = byte_string(data, position, 1, 255)
        if pair != 2 or b"\0" in name or name <= previous:
            raise Refused("an attribute that is not a pair, out of order or a duplicate")
        previous = name
        if head(data, position)[0] == BYTES:
            value, position = byte_string(data, position, 0, 512)
            yield name, value
        else:
            pair, position = container(data, position, ARRAY)
            length, position = unsigned(data, position, BLOB_LIMIT)
            digest, position = byte_string(data, position, 32, 32)
            if pair != 2 or length <= 512:
                raise Refused("an attribute value that must be stored in the tree")
            yield name, (length, digest)


def read_tree(data):
    """Decodes a tree blob: (entries, None) or (None, pages as (last name, hash))."""
    try:
        count, position = container(data, 0, MAP)
        if count == 0:
            found = [], None
        else:
            key, position = unsigned(data, position, 1)
            if count != 1:
                raise Refused("it has entries and pages")
            if key == 0:
                entries, position = read_entries(data, position)
                found = entries, None
            else:
                pages, position = read_pages(data, position)
                found = None, pages
    except IndexError:
        raise Refused("CBOR: truncated") from None
    if position != len(data):
        raise Refused("CBOR: trailing data")
    return found


def read_entries(data, position):
    count, position = container(data, position, ARRAY)
    if not 1 <= count <= PAGE_LIMIT:
        raise Refused("a page of %d entries" % count)
    entries, previous = [], b""
    for _ in range(count):
        entry, position = read_entry(data, position)
        if entry.name <= previous:
            raise Refused("the name %s is out of order or a duplicate" % shown(entry.name))
        previous = entry.name
        entries.append(entry)
    return entries, position


def read_pages(data, position):
    count, position = container(data, position, ARRAY)
    if count < 2:
        raise Refused("a table of %d pages" % count)
    pages, previous = [], b""
    for _ in range(count):
        pair, position = container(data, position, ARRAY)
        name, position = byte_string(data, position, 1, 255)
        digest, position = byte_string(data, position, 32, 32)
        if pair != 2 or name <= previous:
            raise Refused("pages out of order")
        previous = name
        pages.append((name, digest))
    return pages, position


class Trees:
    """Reads trees and lists of pieces, and caches the most recently used ones."""

    def __init__(self, blobs):
        self.blobs = blobs
        self.cache = Cache(4 * MIB)

    def tree(self, digest):
        found = self.cache.get(digest)
        if found is None:
            data = self.blobs.read(TREE, digest)
            try:
                found = read_tree(data)
            except Refused as trouble:
                raise Refused("tree %s: %s" % (digest.hex(), trouble)) from None
            self.cache.put(digest, found, len(data))
        return found

    def page(self, digest, number):
        """Returns the entries of a directory's page, and whether it is the last."""
        entries, pages = self.tree(digest)
        if pages is None:
            return entries, True
        last, page = pages[number]
        entries, _ = self.tree(page)
        if not entries or entries[-1].name != last \
                or number and entries[0].name <= pages[number - 1][0]:
            raise Refused("tree %s: the names of a page do not match its table" % digest.hex())
        return entries, number + 1 == len(pages)

    def page_count(self, digest):
        pages = self.tree(digest)[1]
        return 1 if pages is None else len(pages)

    def pieces(self, entry):
        """Yields each piece of a file: (length, hash), where the hash of a hole is None."""
        if entry.content is None:
            return iter(())
        return self.pieces_within(entry.content, 0, entry.level)

    def pieces_within(self, data, position, level):
        for length, digest in read_pieces(data, position, level):
            if level:
                yield from self.pieces_within(*self.list(digest, length, level - 1), level - 1)
            else:
                yield length, digest

    def list(self, digest, length, level):
        """Reads and validates a list blob: its bytes, and the position of its pieces."""
        data = self.blobs.read(LIST, digest)
        try:
            count, position = container(data, 0, MAP)
            key, position = unsigned(data, position, 1)
            found = 0
            if key == 0:
                found, position = unsigned(data, position, 1)
                refuse_default(found, key)
                key, position = unsigned(data, position, 1)
            if key != 1 or count != (2 if found else 1) or found != level:
                raise Refused("it is a list of another level")
            if skip(data, position) != len(data):
                raise Refused("CBOR: trailing data")
            if sum(piece for piece, _ in read_pieces(data, position, level)) != length:
                raise Refused("its size is not the expected one")
        except (Refused, IndexError) as trouble:
            raise Refused("list %s: %s" % (digest.hex(), trouble)) from None
        return data, position


# -- Walking a snapshot ---------------------------------------------------------------------------


class WalkedDirectory:
    """A directory of a walk: its name and its parent."""

    __slots__ = ("parent", "name", "depth", "length")

    def __init__(self, parent, name):
        self.parent, self.name = parent, name
        self.depth = parent.depth + 1 if parent else 0
        self.length = parent.length_with(name) if parent else len(name)

    def length_with(self, name):
        """Returns the length of the path of a name in this directory."""
        return self.length + bool(self.length) + len(name)

    def path(self, name=b""):
        names, directory = [name], self
        while directory is not None:
            names.append(directory.name)
            directory = directory.parent
        return b"/".join(filter(None, reversed(names)))


ENTER, MEET, LEAVE, LOST = range(4)


def walk(trees, root, top, entry=None):
    """Yields everything below a directory, in the order of names: (event, directory, entry or
    error).

    Only the path from the root is kept in memory, not the pages along it, so depth costs little
    memory: the entry with a directory's attributes is read again at the end of the directory.
    """
    stack = [[top, root, 0, 0]]
    while stack:
        directory, digest, number, position = state = stack[-1]
        entries, is_last, trouble = page_or_trouble(trees, digest, number)
        if trouble:
            yield LOST, directory, trouble
        for found in itertools.islice(entries, position, None):
            position += 1
            if directory.length_with(found.name) > PATH_LIMIT:
                yield LOST, directory, Refused(
                    "it contains a path of more than %d bytes" % PATH_LIMIT)
            elif found.type != DIRECTORY:
                yield MEET, directory, found
            else:
                below = WalkedDirectory(directory, found.name)
                yield ENTER, below, found
                if below.depth < DEPTH_LIMIT:
                    state[2:] = number, position
                    stack.append([below, found.subtree, 0, 0])
                    break
                yield LOST, below, Refused("more than %d directories are nested" % DEPTH_LIMIT)
                yield LEAVE, below, found
        if stack[-1] is not state:
            continue
        if not is_last:
            state[2:] = number + 1, 0
            continue
        stack.pop()
        if not stack:
            yield LEAVE, directory, entry
            return
        _, digest, number, position = stack[-1]
        entries, _, trouble = page_or_trouble(trees, digest, number)
        if trouble:
            yield LOST, directory, trouble
        yield LEAVE, directory, None if trouble else entries[position - 1]


def page_or_trouble(trees, digest, number):
    """Returns a page's entries, whether it is the last, and its error."""
    try:
        return (*trees.page(digest, number), None)
    except Refused as trouble:
        try:
            return (), number + 1 >= trees.page_count(digest), trouble
        except Refused:
            return (), True, trouble


def find_path(trees, root, path):
    """Returns the entry and the tree at a path; the entry is None for the root."""
    entry, digest = None, root
    for name in (part for part in path.split(b"/") if part):
        if digest is None:
            raise Failure("%s is not a directory" % shown(entry.name))
        entry = find_name(trees, digest, name)
        if entry is None:
            raise Failure("%s is not in the snapshot: %s does not exist"
                          % (shown(path), shown(name)),
                          "`ls` lists its entries")
        digest = entry.subtree
    return entry, digest


def find_name(trees, digest, name):
    pages = trees.tree(digest)[1]
    number = next((n for n, page in enumerate(pages) if name <= page[0]), None) if pages else 0
    if number is None:
        return None
    return next((entry for entry in trees.page(digest, number)[0] if entry.name == name), None)


# -- Signatures: Ed25519 --------------------------------------------------------------------------

SIGNATURE_LIMIT = 4096
ORDER = 2 ** 252 + 27742317777372353535851937790883648493
EDWARDS_D = -121665 * pow(121666, CURVE - 2, CURVE) % CURVE
ROOT_OF_MINUS_1 = pow(2, (CURVE - 1) // 4, CURVE)


def added(p, q):
    """Returns the sum of two points of edwards25519, in extended coordinates (RFC 8032, 5.1.4)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % CURVE, (p[1] + p[0]) * (q[1] + q[0]) % CURVE
    c, d = 2 * p[3] * q[3] * EDWARDS_D % CURVE, 2 * p[2] * q[2] % CURVE
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % CURVE, g * h % CURVE, f * g % CURVE, e * h % CURVE


def multiplied(scalar, point):
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = added(total, point)
        scalar, point = scalar >> 1, added(point, point)
    return total


def are_same(p, q):
    return not ((p[0] * q[2] - q[0] * p[2]) % CURVE or (p[1] * q[2] - q[1] * p[2]) % CURVE)


def point_of(data):
    """Decodes a point of 32 bytes, or returns None if it is not a point in canonical form."""
    y = int.from_bytes(data, "little") & (1 << 255) - 1
    sign = data[31] >> 7
    if y >= CURVE:
        return None
    square = (y * y - 1) * pow(EDWARDS_D * y * y + 1, CURVE - 2, CURVE) % CURVE
    x = pow(square, (CURVE + 3) // 8, CURVE)
    if (x * x - square) % CURVE:
        x = x * ROOT_OF_MINUS_1 % CURVE
    if (x * x - square) % CURVE or not x and sign:
        return None
    if x & 1 != sign:
        x = CURVE - x
    return x, y, 1, x * y % CURVE


BASE = point_of(bytes([0x58]) + bytes([0x66] * 31))


def digest_of(message, signature, public):
    """Returns the SHA-512 digest by which a signature is verified (RFC 8032, section 5.1.7)."""
    return hashlib.sha512(signature[:32] + public + message).digest()


def is_signed(digest, signature, public):
    """Whether a signature matches a message, given the result of `digest_of`."""
    key, nonce = point_of(public), point_of(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or nonce is None or scalar >= ORDER:
        return False
    if are_same(multiplied(8, key), (0, 1, 1, 0)):  # of low order
        return False
    challenge = int.from_bytes(digest, "little") % ORDER
    return are_same(multiplied(scalar, BASE), added(nonce, multiplied(challenge, key)))


Signed = collections.namedtuple("Signed", "signer digest signature public")


def read_signature(data, end, repository_id):
    """Returns the signature of a snapshot whose line 1 ends at `end`, or None if line 2 is not a
    signature."""
    line = data[end + 1:end + 1 + SIGNATURE_LIMIT].partition(b"\n")
    try:
        value = json.loads(line[0].decode("utf-8"), object_pairs_hook=without_twins)
        signer = value["signer"]
        public = bech32_decode("sbxsig", signer) if signer == signer.lower() else None
        signature = base64.b64decode(value["signature"].encode("ascii"), validate=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not line[1] or public is None or len(public) != 32 or len(signature) != 64:
        return None
    message = b"sandboxctl snapshot v1\n%s\n" % repository_id.encode() + data[:end]
    return Signed(signer, digest_of(message, signature, public), signature, public)


# -- Snapshots ------------------------------------------------------------------------------------

WANTED = {"format", "version", "repository", "source", "sequence", "time", "host", "tree",
          "totals", "original"}
TOKEN = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrtu])*"|[\[\]{}:,]|[-+.0-9A-Za-z]+')
SPACE = re.compile(rb"[ \t\r]*")


def wanted_members(line):
    """Returns the members that are needed, decoded; others have the value None."""
    members, open_marks, name, begin = {}, [], None, None
    position = SPACE.match(line).end()
    while position < len(line):
        token = TOKEN.match(line, position)
        if token is None:
            raise not_json(position)
        mark, is_outer = token.group()[:1], len(open_marks) == 1
        if is_outer and begin is None:
            # Directly inside the outermost braces: a name, its colon, or the end.
            if name is None and mark == b'"':
                name = decoded(token.group())
            elif name is not None and mark == b":":
                begin = token.end()
            elif name is not None or mark != b"}":
                raise not_json(position)
        if is_outer and begin is not None and mark in (b",", b"}"):
            if name in members:
                raise Refused("it has duplicate members %s" % json.dumps(name))
            value = line[begin:position]
            members[name] = decoded(value) if name in WANTED else None
            name = begin = None
        if mark in (b"{", b"["):
            if len(open_marks) == 16:
                raise Refused("it is nested deeper than 16")
            open_marks.append(b"}" if mark == b"{" else b"]")
        elif mark in (b"}", b"]") and (not open_marks or open_marks.pop() != mark):
            raise not_json(position)
        position = SPACE.match(line, token.end()).end()
        if not open_marks:
            break
    if open_marks or position != len(line) or not line.lstrip().startswith(b"{"):
        raise not_json(position)
    return members


def not_json(position):
    return Refused("it is not one JSON object, at byte %d" % position)


def decoded(text):
    """Decodes a small JSON value."""
    if len(text) > MEMBER_LIMIT:
        raise Refused("it has a member of %d bytes" % len(text))
    try:
        return json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refused("%s is not JSON" % shown(text[:80])) from None


class Snapshot:
    """The members of a snapshot's first line that are needed here."""

    def __init__(self, repository, snapshot_id):
        self.id = snapshot_id
        with repository.open_snapshot(snapshot_id) as file:
            data = bytes(file.content(snapshot_id))
        end = data.find(b"\n")
        if end < 0:
            raise Refused("its first line is not terminated")
        self.members = wanted_members(data[:end])
        self.check(repository)
        self.has_signature = end + 1 < len(data)
        self.signature = self.has_signature and read_signature(data, end, self.text("repository"))

    @property
    def signer(self):
        """The signer, who need not be trusted; "wrong" if line 2 is not a signature of line 1."""
        if not self.has_signature:
            return "-"
        is_valid = self.signature and is_signed(*self.signature[1:])
        return self.signature.signer if is_valid else "wrong"

    def check(self, repository):
        if self.members.get("format") != "sandboxctl-snapshot":
            raise Refused("it is not a sandboxctl snapshot")
        version = self.members.get("version")
        if version != 1 or isinstance(version, bool):
            raise Refused("it has version %s, but this program supports only 1"
                          % json.dumps(version)[:40])
        if repository.id is not None and self.members.get("repository") != repository.id:
            raise Refused("it belongs to another repository")
        tree = self.text("tree")
        if not re.fullmatch("[0-9a-f]{64}", tree):
            raise Refused("its tree is not a hash")
        self.tree = bytes.fromhex(tree)
        if self.moment is None:
            raise Refused("its time is not in the format of RFC 3339")

    def text(self, member):
        value = self.members.get(member)
        return value if isinstance(value, str) else ""

    def total(self, name):
        totals = self.members.get("totals")
        return number(totals.get(name)) if isinstance(totals, dict) else 0

    @property
    def sequence(self):
        return number(self.members.get("sequence"))

    @property
    def moment(self):
        """The start of the backup, for sorting: seconds since 1970 and the fraction of a second."""
        form = r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)"
        found = re.fullmatch(form, self.text("time"), re.ASCII)
        if found is None:
            return None
        day, time, fraction, zone = found.groups()
        try:
            zone = "+00:00" if zone in "Zz" else zone
            moment = datetime.datetime.fromisoformat("%sT%s%s" % (day, time, zone))
            return moment.timestamp(), float(fraction or 0)
        except (ValueError, OverflowError):
            return None


def number(value):
    """Returns a count in a snapshot, or 0 if it is missing."""
    return value if type(value) is int else 0


def read_snapshots(repository, damage):
    """Returns all readable snapshots, the oldest first."""
    found = []
    for snapshot_id in repository.snapshots():
        try:
            found.append(Snapshot(repository, snapshot_id))
        except Refused as trouble:
            damage("snapshot %s: %s" % (snapshot_id, trouble))
    return by_age(found)


def by_age(snapshots):
    """Sorts snapshots, the oldest first: by time, but those of one source by sequence, because its
    clock may have been set back. A repaired snapshot follows its original."""
    aged, latest = [], {}
    for snapshot in sorted(snapshots, key=lambda one: (one.sequence, one.moment, one.id)):
        source, moment = snapshot.text("source"), snapshot.moment
        if snapshot.sequence > 0:
            moment = latest[source] = max(moment, latest.get(source, moment))
        is_copy = "original" in snapshot.members
        aged.append((moment, snapshot.sequence, is_copy, snapshot.id, snapshot))
    return [entry[-1] for entry in sorted(aged, key=lambda one: one[:-1])]


def find_snapshot(repository, name, damage):
    """Returns the snapshot whose id begins with `name`, or the newest."""
    if name == "latest":
        found = read_snapshots(repository, damage)
        if not found:
            raise Failure("no readable snapshot")
        return found[-1]
    if not re.fullmatch("[0-9a-f]{4,64}", name):
        raise Failure("%r is not a snapshot: use `latest`, or at least four digits of an id" % name,
                      "`list` shows all snapshots")
    ids = [found for found in repository.snapshots() if found.startswith(name)]
    if len(ids) != 1:
        raise Failure("%d snapshot ids begin with %s" % (len(ids), name),
                      "`list` shows all snapshots")
    try:
        return Snapshot(repository, ids[0])
    except Refused as trouble:
        damage("snapshot %s: %s" % (ids[0], trouble))
        raise Failure("snapshot %s cannot be used" % ids[0]) from None


# -- Restoring ------------------------------------------------------------------------------------

JOBS_AT_ONCE = 32768
SETTABLE_FLAGS = 0x208380FF  # the FS_IOC_SETFLAGS flags that users or root can change
LATE_FLAGS = 0x30            # immutable, append-only
GET_FLAGS, SET_FLAGS = 0x80086601, 0x40086602


class OpenFile:
    """A file that is being written, with the number of its pending pieces."""

    __slots__ = ("directory", "entry", "waiting", "is_planned", "is_made", "descriptor", "trouble")

    def __init__(self, directory, entry):
        self.directory, self.entry = directory, entry
        self.waiting, self.is_planned, self.is_made = 0, False, False
        self.descriptor, self.trouble = -1, None


Job = collections.namedtuple("Job", "table location digest offset file")


class Restore:
    """Restores the entries of a walk into a new directory.

    Entries are collected until several ten thousand pieces are pending. Then their frames are
    decoded, each once and pack by pack, and complete files get their attributes. Every call is
    relative to the descriptor of a directory that this program created.
    """

    def __init__(self, trees, directory, damage):
        self.trees, self.repository, self.damage = trees, trees.blobs.repository, damage
        self.root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.directories = collections.OrderedDict()  # open descriptors by directory
        self.writing = collections.OrderedDict()  # open files, the least recently used first
        self.jobs, self.links, self.left = [], [], []
        self.weight = 0
        self.groups, self.lost = {}, {}
        self.is_root = os.geteuid() == 0
        self.entries = self.files = self.bytes = self.troubles = self.not_owned = 0
        self.size = 0  # of the restored files, counting holes and each hard link

    def run(self, root, top, entry):
        """Restores everything below a directory, and the metadata of its own entry."""
        barred = None
        for event, directory, what in walk(self.trees, root, top, entry):
            if barred is not None:
                if event == LEAVE and directory is barred:
                    barred = None
            elif event == ENTER:
                self.entries += 1
                barred = None if self.make_directory(directory) else directory
            elif event == MEET:
                self.restore_entry(directory, what)
            elif event == LOST:
                self.lose(directory.path(), what)
            elif what is not None:
                self.left.append((directory, what))
                self.weight += what.weight
            if self.is_full:
                self.flush()
        self.end()

    @property
    def is_full(self):
        return len(self.jobs) + len(self.links) + len(self.left) >= JOBS_AT_ONCE \
            or self.weight > 16 * MIB

    def end(self):
        self.flush()
        for directory, name, _, flags in self.groups.values():
            if flags & LATE_FLAGS:
                self.set_late_flags(directory, name, flags)
        os.sync()

    def lose(self, path, trouble):
        self.damage("%s: %s" % (shown(path) or "the root", trouble))

    def fail(self, path, error):
        """Reports a failed system call."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise Failure("%s: %s" % (shown(path), error.strerror),
                          "restored files remain; free space and restore to a new directory")
        self.troubles += 1
        say("not restored", "%s: %s" % (shown(path) or "the root", error.strerror or error))

    # Directories

    def descriptor(self, directory):
        """Returns the open descriptor of a directory; valid until the next call."""
        way = []
        while directory.parent is not None and directory not in self.directories:
            way.append(directory)
            directory = directory.parent
        found = self.root
        if directory.parent is not None:
            self.directories.move_to_end(directory)
            found = self.directories[directory]
        for directory in reversed(way):
            found = os.open(directory.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                            | os.O_CLOEXEC, dir_fd=found)
            self.directories[directory] = found
            if len(self.directories) > 256:
                os.close(self.directories.popitem(last=False)[1])
        return found

    def make_directory(self, directory):
        try:
            os.mkdir(directory.name, 0o700, dir_fd=self.descriptor(directory.parent))
            return True
        except OSError as error:
            self.fail(directory.path(), error)
            return False

    def finish_directory(self, directory, entry):
        """Sets a directory's metadata after the last change in it."""
        try:
            self.set_metadata(directory.path(), entry, self.descriptor(directory))
        except OSError as error:
            self.fail(directory.path(), error)

    # Names

    def restore_entry(self, directory, entry):
        self.entries += 1
        if entry.group is not None and self.joins_group(directory, entry):
            return
        try:
            if entry.type == FILE:
                self.plan(OpenFile(directory, entry))
            else:
                self.make_special(directory, entry)
        except OSError as error:
            self.fail(directory.path(entry.name), error)

    def joins_group(self, directory, entry):
        """Whether the entry becomes a hard link to the first of its group."""
        likeness = (entry.type, entry.size, entry.target, entry.major, entry.minor, entry.level,
                    blake2b(entry.content or b""))
        first = self.groups.setdefault(entry.group, (directory, entry.name, likeness, entry.flags))
        if first[0] is directory and first[1] == entry.name or first[2] != likeness:
            return False
        self.links.append((directory, entry.name, first))
        return True

    def link(self, directory, name, first):
        trouble = self.lost.get(first[:2])
        if trouble:
            why = "it is a hard link to %s, which is lost: %s"
            self.lose(directory.path(name),
                      Refused(why % (shown(first[0].path(first[1])), trouble)))
            return
        try:
            from_directory = os.dup(self.descriptor(first[0]))
            try:
                os.link(first[1], name, src_dir_fd=from_directory,
                        dst_dir_fd=self.descriptor(directory), follow_symlinks=False)
            finally:
                os.close(from_directory)
            kind, size = first[2][:2]
            if kind == FILE:
                self.count(size)
        except OSError as error:
            self.fail(directory.path(name), error)

    def count(self, size):
        """Counts a restored file as the list of snapshots does."""
        self.files += 1
        self.size += size

    def make_special(self, directory, entry):
        parent = self.descriptor(directory)
        if entry.type == SYMLINK:
            os.symlink(entry.target, entry.name, dir_fd=parent)
        elif entry.type == FIFO:
            os.mkfifo(entry.name, 0o600, dir_fd=parent)
        else:
            device = 0 if entry.type == SOCKET else os.makedev(entry.major, entry.minor)
            os.mknod(entry.name, TYPE_BITS[entry.type] | 0o600, device, dir_fd=parent)
        self.set_metadata(directory.path(entry.name), entry, parent, entry.name)

    # Files

    def plan(self, file):
        """Collects the pieces of a file."""
        offset = 0
        self.weight += file.entry.weight
        try:
            for length, digest in self.trees.pieces(file.entry):
                if digest is not None:
                    self.plan_piece(file, offset, length, digest)
                offset += length
                if self.is_full:
                    self.flush()
        except Refused as trouble:
            file.trouble = file.trouble or trouble
        file.is_planned = True
        if not file.waiting:
            self.finish(file)

    def plan_piece(self, file, offset, length, digest):
        found = next(self.trees.blobs.locations(DATA, digest, length), None)
        if found is None:
            raise self.trees.blobs.reason_missing(DATA, digest, length)
        self.jobs.append(Job(found[0], found[1], digest, offset, file))
        file.waiting += 1

    def flush(self):
        """Decodes the pending pieces, then creates the links and finishes the directories."""
        jobs, self.jobs = self.jobs, []
        jobs.sort(key=lambda job: (id(job.table), job.location))
        for (_, pack), group in itertools.groupby(
                jobs, key=lambda job: (id(job.table), job.location.pack)):
            self.take_from_pack(list(group), pack)
        for link in self.links:
            self.link(*link)
        for directory, entry in self.left:
            self.finish_directory(directory, entry)
        self.links, self.left, self.weight = [], [], 0
        if sys.stderr.isatty():
            print("\r%d entries, %s" % (self.entries, readable(self.bytes)), end="",
                  file=sys.stderr, flush=True)

    def take_from_pack(self, jobs, pack):
        table = jobs[0].table
        by_frame = {number: list(group) for number, group
                    in itertools.groupby(jobs, key=lambda job: job.location.frame)}
        frames = [table.frame(pack, number) for number in by_frame]
        try:
            stored = self.repository.pack(table.pack_id(pack), table.pack_size(pack))
        except Refused as found:
            trouble = Refused("pack %s %s" % (table.pack_id(pack), found))
            for job in jobs:
                self.take(job, trouble)
            return
        for frame, data in decode(self.repository, stored, frames):
            for job in by_frame.pop(frame.number):
                self.take(job, data)

    def take(self, job, data):
        """Writes one piece if it matches its hash; otherwise searches for it elsewhere."""
        file, location = job.file, job.location
        file.waiting -= 1
        if file.trouble is None:
            try:
                self.write(file, self.piece(job, data), job.offset)
            except (Refused, OSError) as trouble:
                file.trouble = trouble
        if file.is_planned and not file.waiting:
            self.finish(file)

    def piece(self, job, data):
        location = job.location
        decoded = data.data if isinstance(data, Refused) else data
        found = decoded[location.offset:location.offset + location.length]
        if blake2b(found) == job.digest:
            return found
        return self.trees.blobs.read(DATA, job.digest, location.length)

    def write(self, file, piece, offset):
        descriptor = self.open(file)
        self.bytes += len(piece)
        while piece:
            count = os.pwrite(descriptor, piece, offset)
            piece, offset = piece[count:], offset + count

    def open(self, file):
        """Returns the descriptor of a file that is being written; the last hundred stay open."""
        if file.descriptor >= 0:
            self.writing.move_to_end(file)
            return file.descriptor
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        if not file.is_made:
            flags |= os.O_CREAT | os.O_EXCL
        file.descriptor = os.open(
            file.entry.name, flags, 0o600, dir_fd=self.descriptor(file.directory))
        file.is_made = True
        self.writing[file] = None
        if len(self.writing) > 100:
            self.close(next(iter(self.writing)))
        return file.descriptor

    def close(self, file):
        if file.descriptor >= 0:
            del self.writing[file]
            os.close(file.descriptor)
            file.descriptor = -1

    def finish(self, file):
        """Sets the size and attributes of a complete file; removes an incomplete one."""
        path = file.directory.path(file.entry.name)
        try:
            if file.trouble is None:
                descriptor = self.open(file)
                os.ftruncate(descriptor, file.entry.size)
                self.set_metadata(path, file.entry, descriptor)
                self.count(file.entry.size)
        except OSError as error:
            file.trouble = error
        self.close(file)
        if file.trouble is None:
            return
        if file.is_made:
            os.unlink(file.entry.name, dir_fd=self.descriptor(file.directory))
        if isinstance(file.trouble, Refused):
            self.lost[file.directory, file.entry.name] = file.trouble
            self.lose(path, file.trouble)
        else:
            self.fail(path, file.trouble)

    # Metadata. Setting user attributes requires write permission, so they are set while the mode is
    # still 0600. Changing the owner drops capabilities, and an ACL contains the mode, so these are
    # set later.

    def set_metadata(self, path, entry, descriptor, name=None):
        """Sets the metadata of an open file or directory, or of a name in the open directory."""
        target = descriptor if name is None else name
        within = {} if name is None else {"dir_fd": descriptor, "follow_symlinks": False}
        self.set_attributes(path, entry, descriptor, name, lambda key: key.startswith(b"user."))
        mode = self.set_owner(path, entry, target, within)
        if entry.type != SYMLINK:
            os.chmod(target, mode, **({} if name is None else {"dir_fd": descriptor}))
        self.set_attributes(path, entry, descriptor, name,
                            lambda key: not key.startswith(b"user."))
        try:
            os.utime(target, ns=(entry.time, entry.time), **within)
        except OverflowError as error:
            self.fail(path, OSError(errno.EOVERFLOW, str(error)))
        if entry.flags and name is None:
            late = LATE_FLAGS if entry.group is not None else 0
            self.set_flags(path, descriptor, entry.flags & ~late)

    def set_owner(self, path, entry, target, within):
        """Sets the owner if run as root; otherwise clears set-id bits. Returns the mode to set."""
        if self.is_root:
            if 0xFFFFFFFF not in (entry.uid, entry.gid):
                os.chown(target, entry.uid, entry.gid, **within)
                return entry.mode
        elif (entry.uid, entry.gid) == (os.geteuid(), os.getegid()):
            return entry.mode
        self.not_owned += 1
        return entry.mode & 0o1777

    def set_attributes(self, path, entry, descriptor, name, is_due):
        if entry.attributes is None:
            return
        target, within = descriptor, {}
        if name is not None:
            target = b"/proc/self/fd/%d/%s" % (descriptor, name)
            within = {"follow_symlinks": False}
        for key, value in read_attributes(entry.attributes):
            if not is_due(key):
                continue
            where = b"%s (attribute %s)" % (path, key)
            try:
                if isinstance(value, tuple):
                    value = self.trees.blobs.read(DATA, value[1], value[0])
                os.setxattr(target, key, value, **within)
            except Refused as trouble:
                self.lose(where, trouble)
            except OSError as error:
                self.fail(where, error)

    def set_flags(self, path, descriptor, flags):
        try:
            present = struct.unpack("I", fcntl.ioctl(descriptor, GET_FLAGS, bytes(4)))[0]
            wanted = present & ~SETTABLE_FLAGS | flags & SETTABLE_FLAGS
            if wanted != present:
                fcntl.ioctl(descriptor, SET_FLAGS, struct.pack("I", wanted))
        except OSError as error:
            self.fail(b"%s (flags)" % path, error)

    def set_late_flags(self, directory, name, flags):
        """Sets the flags of immutable files, which cannot get further links, after all links
        exist."""
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                                 dir_fd=self.descriptor(directory))
            self.set_flags(directory.path(name), descriptor, flags)
            os.close(descriptor)
        except OSError as error:
            self.fail(directory.path(name), error)


# -- Verifying ------------------------------------------------------------------------------------


class Survey:
    """Verifies that everything that snapshots refer to exists, each tree once."""

    def __init__(self, trees, damage):
        self.trees, self.damage = trees, damage
        self.known = {}  # the depth of each tree, and the length of its longest path

    def run(self, snapshot):
        stack = [[snapshot.tree, b"", 0, 0, (0, 0)]]
        if snapshot.tree in self.known:
            return
        while stack:
            digest, name, number, location, reach = state = stack[-1]
            entries, is_last, trouble = page_or_trouble(self.trees, digest, number)
            if trouble:
                self.report(snapshot, stack, b"", trouble)
            for entry in itertools.islice(entries, location, None):
                location += 1
                below = (0, 0)
                if entry.type == DIRECTORY:
                    below = self.known.get(entry.subtree)
                    if below is None and len(stack) < DEPTH_LIMIT:
                        state[2:] = number, location, reach
                        stack.append([entry.subtree, entry.name, 0, 0, (0, 0)])
                        break
                    below = joined(entry.name, below or (DEPTH_LIMIT, 0))
                else:
                    below = (0, len(entry.name))
                    self.check(snapshot, stack, entry)
                reach = (max(reach[0], below[0]), max(reach[1], below[1]))
            if stack[-1] is not state:
                continue
            if not is_last:
                state[2:] = number + 1, 0, reach
                continue
            self.known[digest] = reach
            stack.pop()
            if stack:
                below, above = joined(name, reach), stack[-1][4]
                stack[-1][4] = (max(above[0], below[0]), max(above[1], below[1]))
            elif reach[0] >= DEPTH_LIMIT or reach[1] > PATH_LIMIT:
                self.report(snapshot, [], b"", "a path has more than %d bytes, or more than %d "
                            "directories are nested" % (PATH_LIMIT, DEPTH_LIMIT))

    def check(self, snapshot, stack, entry):
        """Checks that each blob of an entry is in an existing pack."""
        try:
            for length, digest in self.trees.pieces(entry):
                self.find(digest, length)
            for _, value in read_attributes(entry.attributes) if entry.attributes else ():
                if isinstance(value, tuple):
                    self.find(value[1], value[0])
        except Refused as trouble:
            self.report(snapshot, stack, entry.name, trouble)

    def find(self, digest, length):
        blobs = self.trees.blobs
        if digest is not None and next(blobs.locations(DATA, digest, length), None) is None:
            raise blobs.reason_missing(DATA, digest, length)

    def report(self, snapshot, stack, name, trouble):
        path = b"/".join(filter(None, [state[1] for state in stack] + [name]))
        self.damage("snapshot %s: %s: %s" % (snapshot.id[:16], shown(path) or "the root", trouble))


def joined(name, below):
    """Returns the depth and path length of a tree below a directory's name."""
    return below[0] + 1, len(name) + (1 + below[1] if below[1] else 0)


class PackCheck:
    """Reads whole packs and checks them against their names, contents tables and the index."""

    def __init__(self, blobs, without_index, damage):
        self.blobs, self.damage, self.repository = blobs, damage, blobs.repository
        self.indexed = {}  # of each pack: its tables and the numbers of its entries
        for table in () if without_index else blobs.tables:
            for pack, numbers in table.entries_by_pack():
                self.indexed.setdefault(table.pack_id(pack), []).append((table, pack, numbers))

    def run(self, pack_id):
        try:
            sizes = [table.pack_size(pack) for table, pack, _ in self.indexed.get(pack_id, ())]
            file = self.repository.open_pack(pack_id, *sizes[:1])
        except Refused as trouble:
            entries = ENTRY.iter_unpack(self.indexed_end(pack_id)[1])
            found = [(str(trouble), entry[2], entry[5]) for entry in entries]
            return self.report(pack_id, found or [(str(trouble), 0, -1)])
        try:
            with file:
                if file.hash().hex() != pack_id:
                    self.damage("pack %s: its hash does not match its name"
                                % pack_id)
                frames, contents = self.end_of(pack_id, file)
                if frames:
                    self.check_frames(pack_id, file, frames, contents)
        except Refused as trouble:
            self.damage("pack %s: %s" % (pack_id, trouble))

    def end_of(self, pack_id, file):
        """Returns the frames with blobs and the contents table, from the pack or from an index."""
        try:
            frames = read_seek_table(file)
            last = decode_alone(self.repository, file, frames[-1])
            contents = read_contents(last, frames)
            read_members(last, True)
            self.compare(pack_id, frames, contents)
            return frames[:-1], contents
        except Refused as trouble:
            self.damage("pack %s: %s" % (pack_id, trouble))
        return self.indexed_end(pack_id)

    def indexed_end(self, pack_id):
        """Returns the frames with blobs and the entries of a pack according to an index."""
        for table, pack, numbers in self.indexed.get(pack_id, ()):
            frames = [table.frame(pack, number) for number in range(table.frame_counts[pack])]
            entries = [table.entry(number) for number in numbers]
            return frames[:-1], b"".join(sorted(entries, key=lambda entry: (
                ENTRY.unpack(entry)[2], ENTRY.unpack(entry)[5])))
        return [], b""

    def compare(self, pack_id, frames, contents):
        """Checks that the index matches the contents table of a pack."""
        found = {contents[at:at + 48] for at in range(0, len(contents), 48)}
        for table, pack, numbers in self.indexed.get(pack_id, ()):
            if [table.frame(pack, n) for n in range(table.frame_counts[pack])] != frames:
                raise Refused("the frames of an index do not match its seek table")
            for number in numbers:
                entry = table.entry(number)
                if entry not in found:
                    raise Refused("an index entry of blob %s does not match its contents table"
                                  % entry[:32].hex())

    def check_frames(self, pack_id, file, frames, contents):
        entries = {}
        for entry in ENTRY.iter_unpack(contents):
            entries.setdefault(entry[2], []).append(entry)
        try:
            for frame in frames:
                check_frame_head(file, frame)
            decoding = Decoding(self.repository.zstd, file, frames)
            found = [trouble for frame, data in decoding
                     for trouble in self.frame_troubles(frame, data, entries)]
            if decoding.ended_well:
                return self.report(pack_id, found)
        except Refused:
            pass
        for frame in frames:
            try:
                data = decode_alone(self.repository, file, frame)
                found = list(self.frame_troubles(frame, data, entries))
            except Refused as trouble:
                found = [(str(trouble), frame.number, entry[5])
                         for entry in entries.get(frame.number, [(0,) * 7])]
            self.report(pack_id, found)

    def report(self, pack_id, found):
        for text in dict.fromkeys(trouble[0] for trouble in found):
            self.damage("pack %s: %s" % (pack_id, text))
        self.blobs.bad.update((pack_id, frame, offset) for _, frame, offset in found)

    def frame_troubles(self, frame, data, entries):
        """Yields the problems of a decoded frame: (message, frame, offset)."""
        try:
            members = iter(read_members(data, False))
        except Refused as trouble:
            yield str(trouble), frame.number, -1
            return
        begin = end = 0
        for digest, _, number, kind, _, offset, length in entries.get(frame.number, ()):
            while offset >= end and (begin, end) != (FRAME_LIMIT, FRAME_LIMIT + 1):
                begin, end = next(members, (FRAME_LIMIT, FRAME_LIMIT + 1))
            if not begin <= offset <= offset + length <= end:
                yield "frame %d: a blob is not inside one member" % number, number, offset
            if blake2b(data[offset:offset + length]) != digest:
                yield ("frame %d: blob %s of kind %s does not match its hash"
                       % (number, digest.hex(), KINDS[kind]), number, offset)


def verify(repository, blobs, options, damage):
    """Checks packs, indexes and snapshots against each other. Returns a summary."""
    present = set(repository.packs())
    blobs.present = present
    named = {table.pack_id(pack): table.pack_size(pack)
             for table in blobs.tables for pack in range(len(table.frame_counts))}
    for pack_id, size in sorted(named.items()):
        if pack_id not in present:
            damage("pack %s: an index refers to it, but it is missing" % pack_id)
        elif os.lstat(repository.pack_path(pack_id)).st_size != size:
            damage("pack %s: its size does not match the index" % pack_id)
    for pack_id in sorted(present - set(named)):
        say("note", "pack %s is in no index: the backup is unfinished, or use --without-index"
            % pack_id)
    if options.read_data:
        check = PackCheck(blobs, options.without_index, damage)
        for pack_id in sorted(present):
            check.run(pack_id)
    survey = Survey(Trees(blobs), damage)
    snapshots = read_snapshots(repository, damage)
    for snapshot in snapshots:
        survey.run(snapshot)
    return "%d snapshots, %d directories, %d packs%s" % (
        len(snapshots), len(survey.known), len(present),
        ", all data read" if options.read_data else "; --read-data also reads the packs")


# -- Commands -------------------------------------------------------------------------------------


class Damage:
    """Reports damage as it is found, and counts it."""

    def __init__(self):
        self.count = 0

    def __call__(self, text):
        self.count += 1
        say("damaged", text)


def readable(size):
    """Formats a number of bytes for display."""
    if size < KIB:
        return "%d B" % size
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1024 or unit == "TiB":
            return "%.1f %s" % (size, unit)


def put(line):
    sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")


def run_list(repository, options, damage):
    snapshots = read_snapshots(repository, damage)
    put("%-16s  %-25s  %-20s  %10s  %10s  %s"
        % ("snapshot", "time", "host", "files", "size", "signed by"))
    for snapshot in snapshots:
        put("%-16s  %-25s  %-20s  %10d  %10s  %s" % (
            snapshot.id[:16], shown(re.sub(r"\.[0-9]+", "", snapshot.text("time")).encode()[:25]),
            shown(snapshot.text("host").encode()[:20]), snapshot.total("files"),
            readable(snapshot.total("bytes")), snapshot.signer))


def run_verify(repository, options, damage):
    if repository.id is None:
        damage("repository.json is missing")
    blobs = Blobs(repository, options.without_index, damage)
    summary = verify(repository, blobs, options, damage)
    found = "%d problem%s found" % (damage.count, "" if damage.count == 1 else "s")
    put("%s: %s" % (summary, found if damage.count else "no damage found"))


def chosen(repository, options, damage):
    """Returns the trees, and the path, entry and tree (for a directory) of SNAP[:PATH]."""
    name, _, path = os.fsencode(options.what).partition(b":")
    snapshot = find_snapshot(repository, name.decode("ascii", "replace"), damage)
    trees = Trees(Blobs(repository, options.without_index, damage, rescues=True))
    try:
        return (trees, path.strip(b"/"), *find_path(trees, snapshot.tree, path))
    except Refused as trouble:
        damage("snapshot %s: %s" % (snapshot.id[:16], trouble))
        raise Failure("%s cannot be found in the snapshot" % shown(path or b"/"),
                      "--without-index rebuilds the index from the packs") from None


def run_ls(repository, options, damage):
    trees, path, entry, tree = chosen(repository, options, damage)
    if tree is None:
        put_entry(path, entry, options)
        return
    for event, directory, what in walk(trees, tree, WalkedDirectory(None, path)):
        if event == LOST:
            damage("%s: %s" % (shown(directory.path()) or "the root", what))
        elif event == ENTER:
            put_entry(directory.path(), what, options)
        elif event == MEET:
            put_entry(directory.path(what.name), what, options)


def put_entry(path, entry, options):
    if options.null:
        sys.stdout.buffer.write(path + b"\0")
        return
    size = "%d, %d" % (entry.major, entry.minor) if entry.type in (CHARACTER, BLOCK) \
        else str(entry.size)
    target = " -> " + shown(entry.target) if entry.type == SYMLINK else ""
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=entry.seconds)
        time = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        time = "@%d" % entry.seconds
    put("%s %5d %5d %12s %s %s%s" % (stat.filemode(TYPE_BITS[entry.type] | entry.mode), entry.uid,
                                     entry.gid, size, time, shown(path), target))


def run_restore(repository, options, damage):
    trees, path, entry, tree = chosen(repository, options, damage)
    target = os.path.abspath(os.fsencode(options.to))
    if os.path.realpath(target).startswith(os.path.realpath(repository.path) + b"/"):
        raise Failure("%s is inside the repository" % shown(target), "use a directory outside it")
    os.umask(0o077)
    try:
        restore = begin_restore(trees, tree, target, damage)
        if tree is None:
            entry.name, entry.group = os.path.basename(target), None
            restore.restore_entry(WalkedDirectory(None, b""), entry)
            restore.end()
        else:
            restore.run(tree, WalkedDirectory(None, b""), entry)
    except OSError as error:
        raise Failure("%s: %s" % (shown(target), error.strerror)) from None
    put("%d entries restored, %s in %d files" % (
        restore.entries - restore.troubles, readable(restore.size), restore.files))
    if restore.not_owned:
        say("note", "%d entries are owned by the current user: only root can restore owners"
            % restore.not_owned)
    return PARTLY if restore.troubles else DONE


def begin_restore(trees, tree, target, damage):
    """Creates the target directory, or opens the parent directory of a single entry."""
    if tree is None:
        if os.path.lexists(target):
            raise Failure("%s already exists" % shown(target), "use a new file name")
        return Restore(trees, os.path.dirname(target), damage)
    if not os.path.lexists(target):
        os.mkdir(target, 0o700)
    elif not os.path.isdir(target) or os.listdir(target):
        raise Failure("%s exists and is not an empty directory" % shown(target),
                      "use a new directory")
    for key in ("system.posix_acl_default", "system.posix_acl_access"):
        try:
            os.removexattr(target, key)  # defaults inherited from the parent are not in the tree
        except OSError:
            pass
    return Restore(trees, target, damage)


EXAMPLES = """examples:
  recover.py /mnt/backup list
  recover.py /mnt/backup verify --read-data
  recover.py /mnt/backup ls latest
  recover.py /mnt/backup restore latest --to /tmp/all
  recover.py /mnt/backup restore 3f9c:apps/org.example.Notes/data --to /tmp/notes
  recover.py --identity recovery-key /mnt/backup list

exit status: 0 success, 1 failure, 2 usage error, 3 this user or this file system could not create
an entry or set metadata, 12 the key of an encrypted repository is wrong or missing, 13 damage was
found; everything that is not damaged was restored.

An encrypted repository needs a passphrase of one of its key files, or an identity of one of its
recipients, such as the recovery key. If the program age is installed, it decrypts large objects; it
gets the identity through a pipe. Without it, about 10 MB are decrypted per second.

recover.py reads the format in docs/repository-format.md of sandboxctl. Do not run a copy from a
repository that other users can write to: use the one in sandboxctl's sources, or sandboxctl itself.
"""


def arguments():
    parser = argparse.ArgumentParser(
        prog="recover.py", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Reads a sandboxctl repository without sandboxctl. Requires the program zstd.")
    parser.add_argument("repository", metavar="REPO", help="the repository directory")
    parser.add_argument("--without-index", action="store_true",
                        help="find blobs by the contents tables of packs instead of the index")
    parser.add_argument("--zstd", metavar="PROGRAM", default="zstd",
                        help="the zstd program (default: the one in PATH)")
    key = parser.add_mutually_exclusive_group()
    key.add_argument("--identity", metavar="FILE",
                     help="the key of an encrypted repository: an age identity file, or a file "
                     "with the recovery key")
    key.add_argument("--passphrase-file", metavar="FILE",
                     help="a file with a passphrase of an encrypted repository (default: ask on a "
                     "terminal)")
    parser.add_argument("--no-age", action="store_true",
                        help="decrypt without the program age, which is slower")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    commands.add_parser("list", help="list snapshots and their signers, the oldest first")\
        .set_defaults(run=run_list)

    command = commands.add_parser(
        "verify", help="check snapshots, trees, indexes and packs against each other")
    command.add_argument("--read-data", action="store_true",
                         help="also read the packs and check each byte against a hash")
    command.set_defaults(run=run_verify)

    command = commands.add_parser("ls", help="list the entries of a snapshot")
    what = "`latest` or the beginning of an id; after a colon, a path in the snapshot"
    command.add_argument("what", metavar="SNAP[:PATH]", help=what)
    command.add_argument("-0", "--null", action="store_true",
                         help="print only paths, unescaped, each terminated by a NUL")
    command.set_defaults(run=run_ls)

    command = commands.add_parser(
        "restore", help="restore a snapshot, or a file or directory of it",
        description="Restores SNAP[:PATH] as DIR. Owners, devices and system attributes are "
                    "restored only if run as root.")
    command.add_argument("what", metavar="SNAP[:PATH]", help=what)
    command.add_argument("--to", metavar="DIR", required=True,
                         help="a new or empty directory; a new file if PATH is a file")
    command.set_defaults(run=run_restore)
    return parser.parse_args()


def main():
    options = arguments()
    damage = Damage()
    try:
        if options.command != "list" and shutil.which(options.zstd) is None:
            raise Failure("program %s not found" % options.zstd,
                          "install the package zstd, or use --zstd")
        repository = Repository(options.repository, options.zstd)
        if repository.is_encrypted:
            repository.keys = unlock(repository, options)
        elif options.identity is not None or options.passphrase_file is not None:
            raise Failure("a key is given, but the repository is not encrypted",
                          "if it was encrypted before, do not trust it; otherwise omit the key")
        code = options.run(repository, options, damage)
        sys.stdout.flush()
    except Failure as failure:
        say("error", failure.args[0])
        if len(failure.args) > 1:
            say("hint", failure.args[1])
        code = WRONG_KEY if isinstance(failure, KeyFailure) else FAILED
    except KeyboardInterrupt:
        say("error", "interrupted; files being written are incomplete")
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    return DAMAGED if damage.count and code not in (INTERRUPTED, WRONG_KEY) else code or DONE


if __name__ == "__main__":
    sys.exit(main())
