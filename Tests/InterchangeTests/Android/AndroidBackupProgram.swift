import Foundation
import SystemIO
import TestSupport

/// Another implementation of Android backups, in Python with OpenSSL's command, as a reference for
/// the reader and the writer.
enum AndroidBackupProgram {
  /// An entry as the program lists it.
  struct Entry: Codable, Hashable {
    var name: String
    /// `0` for a file, `5` for a directory.
    var type: String
    var mode: Int
    var mtime: Int
    /// The content in hexadecimal.
    var content: String
  }

  /// The ways to convert the characters of a password and of the master key to bytes.
  enum Characters: String, CaseIterable {
    case utf8
    /// The low eight bits, as before Android 4.4.
    case low
    /// UTF-8 for the password, the low bits for the checksum.
    case mixed
  }

  /// Whether the required programs are installed.
  static let isAvailable = Program.exists("python3") && Program.exists("openssl")

  /// Writes a backup with the entries.
  static func make(
    _ entries: [Entry], at path: String, version: Int = 5, isCompressed: Bool = true,
    password: String? = nil, characters: Characters = .utf8, rounds: Int = 10_000
  ) throws {
    let list = String(decoding: try JSONEncoder().encode(entries), as: UTF8.self)
    let words = [
      "make", path, "\(version)", isCompressed ? "1" : "0", characters.rawValue, "\(rounds)", list,
    ]
    _ = try run(words + (password.map { [$0] } ?? []))
  }

  /// Reads a backup and returns its entries. Checks the header, the checksum, the padding and the
  /// end.
  static func read(_ path: String, password: String? = nil) throws -> [Entry] {
    let output = try run(["read", path] + (password.map { [$0] } ?? []))
    return try JSONDecoder().decode([Entry].self, from: Data(output.utf8))
  }

  private static func run(_ words: [String]) throws -> String {
    let outcome = try Program.run("python3", ["-c", script] + words)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
    return outcome.output
  }

  private static let script = #"""
    import hashlib, io, json, os, subprocess, sys, tarfile, zlib

    def aes(data, key, iv, flag):
        words = ["openssl", "enc", flag, "-aes-256-cbc", "-K", key.hex(), "-iv", iv.hex()]
        return subprocess.run(words, input=data, stdout=subprocess.PIPE, check=True).stdout

    def characters(data, form):
        if form != "utf8":
            return data
        return b"".join(
            bytes([b]) if b < 128 else chr(0xFF00 | b).encode() for b in data)

    def password(text, form):
        if form == "low":
            units = text.encode("utf-16-le")
            return units[::2]
        return text.encode()

    def derive(secret, salt, rounds):
        return hashlib.pbkdf2_hmac("sha1", secret, salt, rounds, 32)

    def make(path, version, compressed, form, rounds, entries, word=None):
        rounds = int(rounds)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for entry in json.loads(entries):
                info = tarfile.TarInfo(entry["name"])
                info.type = entry["type"].encode()
                info.mode, info.mtime = entry["mode"], entry["mtime"]
                content = bytes.fromhex(entry["content"])
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        data = buffer.getvalue()
        if compressed == "1":
            data = zlib.compress(data)
        lines = ["ANDROID BACKUP", version, compressed]
        if word is None:
            lines.append("none")
        else:
            salt, check, iv, key, vector = (os.urandom(n) for n in (64, 64, 16, 32, 16))
            outer = derive(password(word, form), salt, rounds)
            checksum = derive(characters(key, form), check, rounds)
            blob = b"\x10" + vector + b"\x20" + key + b"\x20" + checksum
            hexed = lambda data: data.hex().upper()
            lines += ["AES-256", hexed(salt), hexed(check), str(rounds), hexed(iv),
                      hexed(aes(blob, outer, iv, "-e"))]
            data = aes(data, key, vector, "-e")
        with open(path, "wb") as file:
            file.write("".join(line + "\n" for line in lines).encode() + data)

    def read(path, word=None):
        with open(path, "rb") as file:
            assert file.readline() == b"ANDROID BACKUP\n"
            version = int(file.readline())
            assert 1 <= version <= 5
            compressed = int(file.readline())
            cipher = file.readline()
            if cipher == b"AES-256\n":
                salt, check = (bytes.fromhex(file.readline().decode()) for _ in range(2))
                assert len(salt) == 64 and len(check) == 64
                rounds = int(file.readline())
                iv, blob = (bytes.fromhex(file.readline().decode()) for _ in range(2))
                blob = aes(blob, derive(word.encode(), salt, rounds), iv, "-d")
                assert blob[0] == 16 and blob[17] == 32 and blob[50] == 32 and len(blob) == 83
                vector, key, checksum = blob[1:17], blob[18:50], blob[51:]
                assert derive(characters(key, "utf8"), check, rounds) == checksum
                data = aes(file.read(), key, vector, "-d")
            else:
                assert cipher == b"none\n" and word is None
                data = file.read()
        if compressed:
            inflater = zlib.decompressobj()
            data = inflater.decompress(data)
            assert inflater.eof and not inflater.unused_data
        assert data[-1024:] == bytes(1024) and len(data) % 512 == 0
        entries = []
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for info in tar:
                content = tar.extractfile(info).read() if info.isfile() else b""
                entries.append({"name": info.name, "type": info.type.decode(), "mode": info.mode,
                                "mtime": int(info.mtime), "content": content.hex()})
        print(json.dumps(entries))

    {"make": make, "read": read}[sys.argv[1]](*sys.argv[2:])
    """#
}
