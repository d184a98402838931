"""recover.py decrypts age files and reads encrypted repositories.

The repository is Tests/Vectors/repository-v1, which these tests encrypt. CommandTests reads
repositories that sandboxctl itself has encrypted.
"""

import collections
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = PACKAGE / "Tools/recover.py"
SPEC = importlib.util.spec_from_file_location("recover", SCRIPT)
recover = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(recover)

PLAIN = PACKAGE / "Tests/Vectors/repository-v1/repository"
LIST = PACKAGE / "Tests/Vectors/list-tree.py"
SHARED = pathlib.Path(os.environ.get("SANDBOXCTL_SHARED") or PACKAGE.parent / "shared")
VECTORS = SHARED / "vectors/age"
AGE = shutil.which("age")
ZSTD = shutil.which("zstd")


# -- Encryption, the reverse of recover.py ---------------------------------------------------------


def seal(key, nonce, plain):
    stream = recover.chacha20(key, 0, nonce, 1 + (len(plain) + 63) // 64)
    hidden = bytes(a ^ b for a, b in zip(plain, stream[64:]))
    padded = hidden + bytes(-len(hidden) % 16) + struct.pack("<QQ", 0, len(hidden))
    return hidden + recover.poly1305(stream[:32], padded)


def base64(data):
    return recover.base64.b64encode(data).rstrip(b"=")


def stanza(kind, arguments, body):
    return b" ".join([b"-> " + kind, *arguments]) + b"\n" + base64(body) + b"\n"


def stanza_of_identity(identity, file_key):
    secret = os.urandom(32)
    share = recover.x25519(secret, (9).to_bytes(32, "little"))
    key = recover.hkdf(recover.x25519(secret, identity.public), share + identity.public,
                       b"age-encryption.org/v1/X25519")
    return stanza(b"X25519", [base64(share)], seal(key, bytes(12), file_key))


def stanza_of_passphrase(passphrase, factor, file_key):
    salt = os.urandom(16)
    key = hashlib.scrypt(passphrase, salt=b"age-encryption.org/v1/scrypt" + salt, n=1 << factor,
                         r=8, p=1, maxmem=1 << 30, dklen=32)
    return stanza(b"scrypt", [base64(salt), b"%d" % factor], seal(key, bytes(12), file_key))


def encrypt(plain, identities=(), passphrase=None, factor=10):
    """Returns an age file for identities or a passphrase."""
    file_key, nonce = os.urandom(16), os.urandom(16)
    stanzas = [stanza_of_identity(identity, file_key) for identity in identities]
    if passphrase is not None:
        stanzas.append(stanza_of_passphrase(passphrase, factor, file_key))
    head = b"age-encryption.org/v1\n" + b"".join(stanzas) + b"---"
    code = recover.hmac.digest(recover.hkdf(file_key, b"", b"header"), head, "sha256")
    key = recover.hkdf(file_key, nonce, b"payload")
    count = max(1, -(-len(plain) // recover.PIECE))
    pieces = [seal(key, number.to_bytes(11, "big") + (b"\1" if number == count - 1 else b"\0"),
                   plain[number * recover.PIECE:(number + 1) * recover.PIECE])
              for number in range(count)]
    return head + b" " + base64(code) + b"\n" + nonce + b"".join(pieces)


def new_identity():
    return recover.identity_of(
        recover.bech32_encode("age-secret-key-", os.urandom(32)).upper())


class Repository:
    """An encrypted copy of a plain repository."""

    def __init__(self, root, source=PLAIN, recipients=1, encrypt=encrypt):
        self.path = root / "repository"
        self.identities = [new_identity() for _ in range(recipients)]
        self.encrypt = lambda data: encrypt(data, self.identities)
        self.key = root / "key"
        self.key.write_text("# created today\n\n%s\n" % self.identities[-1].text)
        self.key.chmod(0o600)
        self.passphrase = root / "passphrase"
        self.passphrase.write_text("eight words\n")
        self.passphrase.chmod(0o600)
        settings = json.loads((source / "repository.json").read_text())
        self.id = settings["id"]
        settings["encryption"] = "age"
        settings["recipients"] = [identity.recipient for identity in self.identities]
        (self.path / "keys").mkdir(parents=True)
        self.settings = self.path / "repository.json"
        self.settings.write_text(json.dumps(settings))
        self.packs = {}  # by the ids of the plain ones
        for pack in sorted(source.glob("packs/*/*.tar.zst")):
            self.packs[pack.name[:64]] = self.store(pack.read_bytes(), "packs", ".tar.zst.age")
        for index in sorted(source.glob("index/*.index")):
            self.store(self.rewritten(index.read_bytes()), "index", ".index.age")
        self.snapshots = [self.store(snapshot.read_bytes(), "snapshots", ".json.age")
                          for snapshot in sorted(source.glob("snapshots/*.json"))]
        self.add_key("default", b"eight words")

    def store(self, plain, directory, ending):
        data = self.encrypt(plain)
        name = recover.blake2b(data).hex()
        path = self.path / directory / (name[:2] if directory == "packs" else "") / (name + ending)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def rewritten(self, index):
        """Returns an index object that names the encrypted packs."""
        index = bytearray(index)
        for number in range(struct.unpack_from("<I", index, 12)[0]):
            at = 64 + 48 * number
            pack = self.packs[bytes(index[at:at + 32]).hex()]
            struct.pack_into("<32sQ", index, at, bytes.fromhex(pack.name[:64]),
                             pack.stat().st_size)
        return bytes(index)

    def add_key(self, name, passphrase, **changes):
        value = {"format": "sandboxctl-key", "version": 1, "repository": self.id,
                 "identity": self.identities[0].text,
                 "recipients": [identity.recipient for identity in self.identities],
                 "created": "2026-11-01T10:00:00Z", "host": "host", "user": "user"}
        value.update(changes)
        data = encrypt((json.dumps(value) + "\n").encode(), passphrase=passphrase)
        (self.path / "keys" / (name + ".age")).write_bytes(data)

    def run(self, *words, key=None, path=None):
        """Runs recover.py with the identity unless another key is given, without a terminal."""
        key = ["--identity", str(self.key)] if key is None else key
        return subprocess.run(
            [sys.executable, "-B", str(SCRIPT), *key, str(path or self.path), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, errors="surrogateescape", timeout=600)


def entries(root):
    """Returns the restored entries: the line of list-tree.py for each path."""
    output = subprocess.run([sys.executable, "-B", str(LIST), str(root)], stdout=subprocess.PIPE,
                            check=True).stdout
    return {line.rpartition(b"\t")[2]: line for line in output.splitlines()}


# -- Tests ----------------------------------------------------------------------------------------


class CipherTests(unittest.TestCase):
    def test_x25519_has_the_values_of_rfc_7748(self):
        for scalar, point, product in (
                ("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
                 "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
                 "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"),
                ("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
                 "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
                 "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"),
                ("09" + "00" * 31, "09" + "00" * 31,
                 "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"),
                ("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
                 "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
                 "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")):
            found = recover.x25519(bytes.fromhex(scalar), bytes.fromhex(point))
            self.assertEqual(found.hex(), product)

    def test_ed25519_has_the_values_of_rfc_8032(self):
        public = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
        signature = bytes.fromhex(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00")

        def is_signed(message, signature, public):
            digest = recover.digest_of(message, signature, public)
            return recover.is_signed(digest, signature, public)

        self.assertTrue(is_signed(b"\x72", signature, public))
        self.assertFalse(is_signed(b"\x73", signature, public))
        for bit in range(0, 512, 7):
            changed = bytearray(signature)
            changed[bit // 8] ^= 1 << bit % 8
            self.assertFalse(is_signed(b"\x72", bytes(changed), public))
        # The same scalar plus the order, and points of low order.
        larger = int.from_bytes(signature[32:], "little") + recover.ORDER
        self.assertFalse(is_signed(b"\x72", signature[:32] + larger.to_bytes(32, "little"), public))
        for low in (bytes(32), bytes([1]) + bytes(31), b"\xec" + b"\xff" * 30 + b"\x7f"):
            self.assertFalse(is_signed(b"\x72", low + bytes(32), low))

    def test_chacha20_has_the_values_of_rfc_8439(self):
        block = recover.chacha20(bytes(range(32)), 1, bytes.fromhex("000000090000004a00000000"), 1)
        self.assertEqual(block.hex(),
                         "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
                         "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e")
        key, nonce = os.urandom(32), os.urandom(12)
        for count in (2, 7, 1025):
            blocks = recover.chacha20(key, 5, nonce, count)
            for number in (0, 1, count - 1):
                self.assertEqual(blocks[64 * number:64 * number + 64],
                                 recover.chacha20(key, 5 + number, nonce, 1))

    def test_poly1305_has_the_values_of_rfc_8439(self):
        key = "85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"
        for key, data, tag in (
                (key, b"Cryptographic Forum Research Group", "a8061dc1305136c6c22b8baf0c0127a9"),
                ("02" + "00" * 31, b"\xff" * 16, "03" + "00" * 15),
                ("02" + "00" * 15 + "ff" * 16, b"\2" + bytes(15), "03" + "00" * 15)):
            self.assertEqual(recover.poly1305(bytes.fromhex(key), data).hex(), tag)

    def test_poly1305_of_long_messages_is_that_of_its_definition(self):
        for size in (0, 1, 255, 256, 257, 272, 511, 4096, 5000, 65536, 65552):
            for key, data in ((os.urandom(32), os.urandom(size)), (b"\xff" * 32, b"\xff" * size)):
                r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
                total = 0
                for at in range(0, size, 16):
                    block = int.from_bytes(data[at:at + 16] + b"\1", "little")
                    total = (total + block) * r % ((1 << 130) - 5)
                tag = (total + int.from_bytes(key[16:], "little")) % (1 << 128)
                self.assertEqual(recover.poly1305(key, data), tag.to_bytes(16, "little"), size)

    def test_sealed_bytes_have_the_values_of_rfc_8439(self):
        key, nonce = bytes(range(0x80, 0xA0)), bytes.fromhex("070000004041424344454647")
        sealed = bytes.fromhex(
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
            "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
            "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
            "3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691")
        associated = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
        self.assertEqual(
            recover.unsealed(key, nonce, sealed, associated),
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
            b"future, sunscreen would be it.")
        self.assertIsNone(recover.unsealed(key, nonce, sealed, b""))
        for at in (0, 50, len(sealed) - 1):
            changed = bytearray(sealed)
            changed[at] ^= 1
            self.assertIsNone(recover.unsealed(key, nonce, bytes(changed), associated))

    def test_identities_are_refused_if_a_character_is_wrong(self):
        identity = new_identity()
        self.assertEqual(recover.identity_of(identity.text), identity)
        self.assertEqual(recover.identity_of(identity.text.lower()), identity)
        self.assertTrue(identity.recipient.startswith("age1"))
        for text in ("", "1", identity.text[:-1], identity.text + "Q", identity.recipient,
                     identity.text[:20] + identity.text[20:].lower(),
                     identity.text.replace("AGE-SECRET-KEY-", "AGE-SECRET-KEX-"),
                     identity.text[:30] + ("Q" if identity.text[30] != "Q" else "P")
                     + identity.text[31:]):
            self.assertIsNone(recover.identity_of(text), text)


class FileTests(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.identity = new_identity()
        self.plain = os.urandom(5 * recover.PIECE + 1000)

    def open(self, data, age=None, passphrase=None):
        path = self.root / "file"
        path.write_bytes(data)
        stored = recover.StoredFile(str(path))
        self.addCleanup(stored.close)
        file = recover.AgeFile(stored, recover.Keys([self.identity], age), passphrase)
        self.addCleanup(file.release)
        return file

    @staticmethod
    def released(file):
        """Returns the bytes before the first error, and the error."""
        found = b""
        try:
            for number in range(file.count):
                found += file.piece(number)
                if file.is_followed and not file.is_ended:
                    return found, "a piece with the mark of the last is not the last"
            return found, None if file.is_ended and not file.is_followed else "truncated"
        except recover.Refused as trouble:
            return found, str(trouble)

    def test_ranges_are_decrypted(self):
        file = self.open(encrypt(self.plain, [self.identity]))
        self.assertEqual(file.size, len(self.plain))
        for offset, length in ((0, 1), (65535, 2), (65536, 65536), (100, 200000), (328670, 10),
                               (0, len(self.plain))):
            self.assertEqual(file.read(offset, length), self.plain[offset:offset + length])
        self.assertTrue(file.is_complete())
        file.release()
        self.assertEqual(file.whole(), self.plain)

    def test_ranges_beside_damage_are_decrypted(self):
        data = bytearray(encrypt(self.plain, [self.identity]))
        start = len(data) - len(self.plain) - 6 * 16
        data[start + 2 * recover.SEALED + 77] ^= 1
        file = self.open(bytes(data))
        self.assertEqual(file.read(0, 131072), self.plain[:131072])
        self.assertEqual(file.read(196608, 132000), self.plain[196608:328608])
        with self.assertRaisesRegex(recover.Refused, "from 131072 to 196607 ") as caught:
            file.read(100000, 200000)
        self.assertEqual(caught.exception.data, self.plain[100000:131072])
        self.assertTrue(file.is_complete())
        with self.assertRaises(recover.Refused):
            file.whole()

    def test_truncated_files_are_decrypted_up_to_their_end(self):
        data = encrypt(self.plain, [self.identity])
        start = len(data) - len(self.plain) - 6 * 16
        for count in (3 * recover.SEALED, 3 * recover.SEALED + 10, 3 * recover.SEALED + 5000):
            file = self.open(data[:start + count])
            self.assertEqual(file.read(0, 3 * recover.PIECE), self.plain[:3 * recover.PIECE])
            self.assertFalse(file.is_complete())
            with self.assertRaises(recover.Refused):
                file.whole()
            with self.assertRaises(recover.Refused):
                recover.read_seek_table(file)
        for count in (-start, 10 - start, -20, 0, 10):
            with self.assertRaises(recover.Refused):
                self.open(data[:start + count]).whole()

    def test_empty_files_have_one_piece(self):
        file = self.open(encrypt(b"", [self.identity]))
        self.assertEqual((file.size, bytes(file.whole())), (0, b""))

    def test_other_recipients_and_changed_headers_are_refused(self):
        with self.assertRaises(recover.NoKey):
            self.open(encrypt(b"text", [new_identity()]))
        data = encrypt(b"text", [self.identity, new_identity()])
        self.assertEqual(bytes(self.open(data).whole()), b"text")
        at = data.rindex(b"X25519")
        with self.assertRaisesRegex(recover.Refused, "authentication code"):
            self.open(data[:at] + b"X25518" + data[at + 6:])
        for text in (b"", b"age-encryption.org/v2\n", b"-----BEGIN AGE ENCRYPTED FILE-----\n",
                     b"age-encryption.org/v1\n" + b"-> x\n" * 400000):
            with self.assertRaises(recover.Refused):
                self.open(text)

    def test_passphrases_open_files_up_to_the_limit_of_work(self):
        data = encrypt(b"text", passphrase=b"words")
        self.assertEqual(bytes(self.open(data, passphrase=b"words").whole()), b"text")
        for passphrase in (b"other", None):
            with self.assertRaises(recover.NoKey):
                self.open(data, passphrase=passphrase)
        for factor in (b"21", b"200", b"0", b"010", b"+9"):
            lie = data.replace(b" 10\n", b" %s\n" % factor, 1)
            with self.assertRaises(recover.Refused) as caught:
                self.open(lie, passphrase=b"words")
            self.assertNotIsInstance(caught.exception, recover.NoKey)

    def test_frames_beside_a_damaged_piece_are_decoded(self):
        if ZSTD is None:
            self.skipTest("the program zstd is missing")
        frames, stored = [], b""
        parts = [os.urandom(150_000) for _ in range(4)]
        for number, part in enumerate(parts):
            (self.root / "part").write_bytes(part)
            data = subprocess.run([ZSTD, "-q", "-c", "--check", str(self.root / "part")],
                                  stdout=subprocess.PIPE, check=True).stdout
            frames.append(recover.Frame(number, len(stored), len(data), len(part)))
            stored += data
        data = bytearray(encrypt(stored, [self.identity]))
        start = len(data) - len(stored) - 16 * -(-len(stored) // recover.PIECE)
        data[start + 4 * recover.SEALED + 5] ^= 1  # bytes 262144 to 327679: frames 1 and 2
        file = self.open(bytes(data))
        repository = collections.namedtuple("Repository", "zstd")(ZSTD)
        found = [data for _, data in recover.decode(repository, file, frames)]
        self.assertEqual([found[0], found[3]], [parts[0], parts[3]])
        self.assertIsInstance(found[1], recover.Refused)
        self.assertGreater(len(found[1].data), 0)
        self.assertTrue(parts[1].startswith(found[1].data))
        self.assertIn("do not match their tag", str(found[2]))

    def test_the_program_age_gets_the_identity_through_a_pipe(self):
        plain = os.urandom(20 * recover.PIECE)
        data = encrypt(plain, [self.identity])
        program = self.root / "age"
        log = self.root / "log"
        program.write_text("#!/bin/sh\n(echo \"$@\"; env) >> %s\ncat \"$3\" >> %s.key\nexit 1\n"
                           % (log, log))
        program.chmod(0o755)
        file = self.open(data, age=str(program))
        file.read(0, 10)
        self.assertFalse(log.exists())
        self.assertEqual(file.whole(), plain)  # by the own code, since the program failed
        self.assertTrue(log.read_text().startswith("-d -i /dev/fd/"))
        self.assertNotIn("AGE-SECRET", log.read_text().upper())
        self.assertEqual((self.root / "log.key").read_text(), self.identity.text + "\n")
        with contextlib.redirect_stderr(io.StringIO()) as output:
            self.assertEqual(self.open(data, age=str(self.root / "none")).whole(), plain)
        self.assertIn("cannot run", output.getvalue())

    def test_the_program_age_agrees(self):
        if AGE is None:
            self.skipTest("the program age is missing")
        plain = os.urandom(18 * recover.PIECE + 5)
        (self.root / "plain").write_bytes(plain)
        data = subprocess.run(
            [AGE, "-r", self.identity.recipient, "-r", new_identity().recipient,
             str(self.root / "plain")], stdout=subprocess.PIPE, check=True).stdout
        for age in (None, AGE):
            file = self.open(data, age=age)
            self.assertEqual(file.whole(), plain)
            self.assertEqual(file.own_pieces, 0 if age else 19)
        # The pieces that age decrypts before the damage are used; the others are decrypted here.
        data = bytearray(data)
        data[-1000] ^= 1
        file = self.open(bytes(data), age=AGE)
        with self.assertRaises(recover.Refused):
            file.whole()
        self.assertEqual(file.read(0, 17 * recover.PIECE), plain[:17 * recover.PIECE])
        self.assertEqual(file.read(18 * recover.PIECE, 5), plain[-5:])

    def test_each_vector_is_opened_or_refused_for_its_reason(self):
        if not VECTORS.is_dir():
            print("SKIPPED-SHARED: no vectors/age in %s (set SANDBOXCTL_SHARED)" % SHARED)
            self.skipTest("no vectors in %s" % VECTORS)
        counts = collections.Counter()
        for path in sorted(VECTORS.iterdir()):
            lines, _, data = path.read_bytes().partition(b"\n\n")
            fields = collections.defaultdict(list)
            for line in lines.decode().split("\n"):
                fields[line.partition(": ")[0]].append(line.partition(": ")[2])
            if fields["armored"] or "hybrid" in path.name:  # not used in repositories
                counts["not supported"] += 1
                continue
            if fields["compressed"]:
                data = zlib.decompress(data)
            self.identity = recover.identity_of(fields["identity"][0]) if fields["identity"] \
                else new_identity()
            passphrase = fields["passphrase"][0].encode() if fields["passphrase"] else None
            outcome, payload = self.outcome(data, passphrase)
            self.assertEqual(outcome, fields["expect"][0], path.name)
            if fields["payload"]:
                self.assertEqual(hashlib.sha256(payload).hexdigest(), fields["payload"][0],
                                 path.name)
            counts[outcome] += 1
        self.assertEqual(sum(counts.values()), 143)
        self.assertEqual(counts["not supported"], 51)

    def outcome(self, data, passphrase):
        try:
            file = self.open(data, passphrase=passphrase)
        except recover.NoKey:
            return "no match", b""
        except recover.Refused as trouble:
            for text, outcome in (("not match its authentication", "HMAC failure"),
                                  ("payload", "payload failure")):
                if text in str(trouble):
                    return outcome, b""
            return "header failure", b""
        payload, trouble = self.released(file)
        try:
            if file.count > 20:  # slow
                return "payload failure" if trouble else "success", payload
            self.assertEqual(bytes(file.whole()), payload)
            self.assertIsNone(trouble)
        except recover.Refused:
            self.assertIsNotNone(trouble)
        return "payload failure" if trouble else "success", payload


@unittest.skipIf(ZSTD is None, "the program zstd is missing")
class RepositoryTests(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)

    def expect(self, outcome, code, *texts):
        self.assertEqual(outcome.returncode, code, outcome.stdout + outcome.stderr)
        for text in texts:
            self.assertIn(text, outcome.stdout + outcome.stderr)

    def assert_reads_everything(self, repository, *options, key=None):
        """Compares each snapshot with the same one of the plain repository."""
        outcome = repository.run("verify", "--read-data", *options, key=key)
        self.expect(outcome, 0, "no damage found")
        self.assertEqual(outcome.stderr, "")
        ours = repository.run("list", key=key)
        theirs = repository.run("list", key=[], path=PLAIN)
        self.expect(ours, 0)
        self.assertEqual([line[18:] for line in ours.stdout.splitlines()],
                         [line[18:] for line in theirs.stdout.splitlines()])
        number = len(list(self.root.glob("plain-*")))
        places = [self.root / ("%s-%d" % (kind, number)) for kind in ("ours", "plain")]
        for path, place, keys in ((None, places[0], key), (PLAIN, places[1], [])):
            outcome = repository.run("restore", "latest", "--to", str(place), key=keys, path=path)
            self.assertIn(outcome.returncode, (0, 3), outcome.stderr)  # 3 without root
        self.assertEqual(entries(places[0]), entries(places[1]))
        self.assertGreater(len(entries(places[0])), 20)

    def test_everything_is_read_with_an_identity(self):
        repository = Repository(self.root, recipients=2)
        self.assert_reads_everything(repository)
        key = ["--no-age", "--without-index", "--identity", str(repository.key)]
        self.assert_reads_everything(repository, key=key)

    def test_everything_is_read_with_a_passphrase(self):
        repository = Repository(self.root)
        repository.add_key("another", b"other words")
        self.assert_reads_everything(
            repository, key=["--passphrase-file", str(repository.passphrase)])

    @unittest.skipIf(AGE is None, "the program age is missing")
    def test_everything_is_read_that_the_program_age_has_encrypted(self):
        def encrypt_by_age(data, identities):
            words = [word for identity in identities for word in ("-r", identity.recipient)]
            return subprocess.run([AGE, *words], input=data, stdout=subprocess.PIPE,
                                  check=True).stdout

        repository = Repository(self.root, encrypt=encrypt_by_age)
        self.assert_reads_everything(repository)
        for pack in repository.packs.values():  # as docs/repository-format.md describes it
            outcome = subprocess.run(
                ["sh", "-c", 'age -d -i "$1" "$2" | zstd -dc | tar -tv', "-", str(repository.key),
                 str(pack)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn(b".sandboxctl/contents", outcome.stdout)
            self.assertEqual((outcome.returncode, outcome.stderr), (0, b""))

    def test_wrong_and_missing_keys_have_their_exit_status(self):
        repository = Repository(self.root, recipients=2)
        named = [identity.recipient for identity in repository.identities]
        self.expect(repository.run("list", key=[]), 12, "no key is given", *named)
        other = self.root / "other"
        other.write_text(new_identity().text)
        other.chmod(0o600)
        self.expect(repository.run("list", key=["--identity", str(other)]), 12, "wrong key", *named)
        for text, reason in (("", "no identity"), ("# only this\n", "no identity"),
                             ("AGE-SECRET-KEY-1WRONG\n", "line 1 is not"),
                             (named[0] + "\n", "line 1 is not"),
                             ("AGE-PLUGIN-YUBIKEY-1QQQQ\n", "line 1 is ignored"),
                             ("age-encryption.org/v1\n", "is encrypted")):
            other.write_text(text)
            self.expect(repository.run("list", key=["--identity", str(other)]), 12, reason)
        self.expect(repository.run("list", key=["--identity", str(self.root / "none")]), 1)
        for text in ("wrong words\n", "", "\n", "eight words\nmore\n"):
            other.write_text(text)
            outcome = repository.run("list", key=["--passphrase-file", str(other)])
            self.expect(outcome, 12)
            self.assertNotIn("wrong words", outcome.stderr)
        self.expect(outcome, 12, "one line")
        shutil.rmtree(str(repository.path / "keys"))
        key = ["--passphrase-file", str(repository.passphrase)]
        self.expect(repository.run("list", key=key), 12, "no key file", "recovery key", *named)
        self.expect(repository.run("list", key=["--identity", str(repository.key), *key]), 2)
        self.expect(repository.run("list"), 0)

    def test_a_passphrase_is_asked_for_on_a_terminal(self):
        repository = Repository(self.root)
        for passphrase, code in ((b"eight words\n", 0), (b"no\nno\nno\n", 12), (b"\4", 12)):
            child, terminal = pty.fork()
            if child == 0:
                os.execv(sys.executable, [sys.executable, "-B", str(SCRIPT), str(repository.path),
                                          "list"])
            output, sent = b"", 0
            with contextlib.suppress(OSError):  # the end of the terminal
                while True:
                    found = os.read(terminal, 4096)
                    if not found:
                        break
                    output += found
                    lines = passphrase.splitlines(True)
                    while sent < min(output.count(b"passphrase of the repository: "), len(lines)):
                        os.write(terminal, lines[sent])
                        sent += 1
            os.close(terminal)
            status = os.waitpid(child, 0)[1]
            self.assertEqual(os.WEXITSTATUS(status), code, output)
            self.assertNotIn(b"eight", output)

    def test_readable_secrets_are_reported(self):
        repository = Repository(self.root)
        repository.key.chmod(0o644)
        self.expect(repository.run("list"), 0, "other users can read")

    def test_damaged_and_foreign_key_files_are_reported(self):
        repository = Repository(self.root)
        words = ["--passphrase-file", str(repository.passphrase)]
        keys = repository.path / "keys"
        repository.add_key("a-foreign", b"eight words", repository="00" * 32)
        repository.add_key("b-later", b"eight words", version=2)
        repository.add_key("c-other", b"eight words", identity="none")
        (keys / "d-short.age").write_bytes((keys / "default.age").read_bytes()[:100])
        (keys / "c-large.age").write_bytes(bytes(70000))
        (keys / "-no-key.age").write_bytes(b"ignored")
        self.expect(repository.run("list", key=words), 0, "a-foreign.age: it belongs to another",
                    "b-later.age: it has version 2", "c-other.age: it has no", "d-short.age: ",
                    "c-large.age: has 70000 bytes")
        (keys / "default.age").unlink()
        self.expect(repository.run("list", key=words), 12, "opens no key file")

    def test_objects_that_are_not_encrypted_are_ignored(self):
        repository = Repository(self.root)
        for source in PLAIN.glob("*/**/*.*"):
            target = repository.path / source.relative_to(PLAIN)
            if source.is_file():
                target.parent.mkdir(exist_ok=True)
                shutil.copy(str(source), str(target))
        listed = repository.run("list")
        self.expect(listed, 0, "is ignored, since it is not encrypted (2 such files)")
        self.assertEqual(len(listed.stdout.splitlines()), 3)
        key = ["--without-index", "--identity", str(repository.key)]
        verified = repository.run("verify", "--read-data", key=key)
        self.expect(verified, 0, "4 packs, all data read: no damage", "note: packs/53/532c8e486e")

    def test_wrong_repository_files_are_refused(self):
        repository = Repository(self.root)
        settings = json.loads(repository.settings.read_text())
        for member, value, code, reason in (
                ("encryption", "none", 1, "recipients is"), ("encryption", "pgp", 1, "encryption"),
                ("recipients", [], 1, "recipients"), ("recipients", ["\x1b[1m"], 1, "recipients"),
                ("recipients", "age1q", 1, "recipients"), ("id", "00" * 32, 13, "another")):
            repository.settings.write_text(json.dumps(dict(settings, **{member: value})))
            self.expect(repository.run("list"), code, reason)
        repository.settings.write_text(json.dumps(dict(settings, encryption="none", recipients=[])))
        self.expect(repository.run("list"), 1, "a key is given", "not encrypted")
        self.expect(repository.run("list", key=[], path=PLAIN), 0)

    def test_without_the_repository_file_everything_is_read(self):
        repository = Repository(self.root)
        repository.settings.unlink()
        self.expect(repository.run("restore", "latest", "--to", str(self.root / "back")),
                    *([0] if os.geteuid() == 0 else [3]), "repository.json is missing")
        key = ["--passphrase-file", str(repository.passphrase)]
        self.expect(repository.run("list", key=key), 0)
        other = self.root / "other"
        other.write_text(new_identity().text)
        self.expect(repository.run("list", key=["--identity", str(other)]), 12, "wrong key")

    def test_a_removed_recipient_reads_older_objects(self):
        repository = Repository(self.root)
        settings = json.loads(repository.settings.read_text())
        settings["recipients"] = [new_identity().recipient]
        repository.settings.write_text(json.dumps(settings))
        self.expect(repository.run("list"), 0, "not one of the current recipients")

    def test_older_identities_read_objects_from_before_a_rotation(self):
        repository = Repository(self.root)
        old, new = repository.identities[0], new_identity()
        settings = json.loads(repository.settings.read_text())
        settings.update(recipients=[new.recipient], older_recipients=[old.recipient])
        repository.settings.write_text(json.dumps(settings))
        changes = {"identity": new.text, "recipients": [new.recipient]}
        repository.add_key("default", b"eight words", older=[old.text], **changes)
        key = ["--passphrase-file", str(repository.passphrase)]
        self.assert_reads_everything(repository, key=key)
        repository.key.write_text("%s\n%s\n" % (new.text, old.text))
        self.assert_reads_everything(repository)
        for older in ("none", [1], [old.text, "AGE-SECRET-KEY-1"]):
            repository.add_key("default", b"eight words", older=older, **changes)
            self.expect(repository.run("list", key=key), 12, "it has no X25519 identity")

    def test_damage_costs_only_the_files_in_it(self):
        repository = Repository(self.root)
        largest = max(repository.packs.values(), key=lambda pack: pack.stat().st_size)
        intact = largest.read_bytes()
        whole = self.restored(repository, 0)
        for name, data in (("header", b"x" + intact[1:]), ("end", intact[:-1] + b"x"),
                           ("truncated", intact[:-3000]), ("empty", b"")):
            largest.write_bytes(data)
            outcome = repository.run("verify", "--read-data")
            self.expect(outcome, 13, "pack %s: " % largest.name[:64], "snapshot ", "problems found")
            found = self.restored(repository, 13)
            self.assertTrue(found.items() <= whole.items(), name)
            self.assertLess(len(found), len(whole), name)
            self.assertGreater(len(found), 0, name)
        largest.write_bytes(intact + b"more")
        self.expect(repository.run("verify"), 13, "its size does not match the index")
        self.assertEqual(self.restored(repository, 0), whole)
        largest.write_bytes(intact)
        snapshot = repository.snapshots[0]
        data = bytearray(snapshot.read_bytes())
        data[-1] ^= 1
        snapshot.write_bytes(bytes(data))
        outcome = repository.run("list")
        self.expect(outcome, 13, "its hash does not match its name")
        self.assertEqual(len(outcome.stdout.splitlines()), 2)

    def restored(self, repository, code):
        place = self.root / "restored"
        shutil.rmtree(str(place), ignore_errors=True)
        outcome = repository.run("restore", repository.snapshots[0].name[:16], "--to", str(place))
        self.assertIn(outcome.returncode, (code, code or 3), outcome.stderr)
        return {name: line for name, line in entries(place).items() if line.startswith(b"file\t")}


if __name__ == "__main__":
    unittest.main()
