import ArchiveStore
import Codecs
import Interchange
import SystemIO
import TestSupport
import Testing

/// Archives compressed with bzip2, xz, lzip and lzma: their checksums, and the data decoded before
/// damage.
struct CompressedArchiveTests {
  private typealias Archives = ArchiveSourceTests

  /// A checksum after the end of the archive in the data is also verified.
  @Test(arguments: ["bzip2", "xz"]) func aWrongCheckAtTheEndIsFound(program: String) throws {
    let directory = try TemporaryDirectory("archive")
    // libarchive reads nothing after the end-of-archive marker, so it verifies no checksum there.
    let zeros = [UInt8](repeating: 0, count: 1 << 20)
    try directory.write(PaxArchive.bytes([("a", [1]), ("b", [2])]) + zeros, at: "tar")
    try Archives.run("\(program) < tar > z", in: directory)
    let (whole, _) = try Archives.importing("z", of: directory)
    #expect(whole.isComplete, "\(whole)")
    var bytes = try directory.read("z")
    bytes[bytes.count - 3] ^= 1
    try directory.write(bytes, at: "z")
    let (report, fixture) = try Archives.importing("z", of: directory)
    #expect(report.damage?.kind == .damaged && report.damage?.isSuspect == true, "\(report)")
    #expect(try fixture.bytes("folders/x/b", report) == [2])
  }

  /// The damage of a block is detected when it is decoded, and the blocks before it are intact.
  @Test(arguments: ["bzip2 -1", "xz --block-size=100000"])
  func entriesBeforeADamagedBlockAreImported(program: String) throws {
    let directory = try TemporaryDirectory("archive")
    var random = Seeded(9)
    let files = (0..<8).map { ("f\($0)", random.bytes(50_000)) }
    try directory.write(PaxArchive.bytes(files), at: "tar")
    try Archives.run("\(program) < tar > z", in: directory)
    var bytes = try directory.read("z")
    bytes[bytes.count / 2] ^= 0x10
    try directory.write(bytes, at: "z")
    let (report, fixture) = try Archives.importing("z", of: directory)
    #expect(report.damage?.isSuspect == true, "\(report)")
    let name = program.hasPrefix("xz") ? "xz" : "bzip2"
    #expect(report.damage?.reason.hasPrefix("its \(name) data is damaged") == true, "\(report)")
    for (name, content) in files.prefix(2) {
      #expect(try fixture.bytes(ByteString("folders/x/\(name)"), report) == content)
    }
  }

  /// Damage changes a whole bzip2 block, so that the first block no longer contains an archive.
  @Test func damageOfTheFirstBlockIsNamed() throws {
    let directory = try TemporaryDirectory("archive")
    var random = Seeded(10)
    try directory.write(PaxArchive.bytes([("a", random.bytes(50_000))]), at: "tar")
    try Archives.run("bzip2 < tar > z", in: directory)
    var bytes = try directory.read("z")
    bytes[bytes.count / 2] ^= 0x10
    try directory.write(bytes, at: "z")
    let error = #expect(throws: InterchangeError.self) {
      try Archives.importing("z", of: directory)
    }
    #expect(error?.kind == .damaged)
    #expect(
      error?.reason.hasPrefix("its bzip2 data is damaged") == true, "\(String(describing: error))")
    try directory.write(Array("no archive".utf8), at: "text")
    try Archives.run("bzip2 < text > z", in: directory)
    let other = #expect(throws: InterchangeError.self) {
      try Archives.importing("z", of: directory)
    }
    #expect(other?.kind == .unknownFormat)
  }

  /// A dictionary of 3 GiB in the header of the first block would be allocated for a few bytes.
  @Test func aDictionaryOverTheLimitIsNamed() throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write(PaxArchive.bytes([("a", [1])]), at: "tar")
    let script = """
      import struct, sys, zlib
      data = bytearray(sys.stdin.buffer.read())
      end = 12 + (data[12] + 1) * 4
      filter = data.index(bytes([0x21, 1]), 12, end)
      data[filter + 2] = 39
      data[end - 4:end] = struct.pack("<I", zlib.crc32(data[12:end - 4]))
      sys.stdout.buffer.write(data)
      """
    try directory.write(Array(script.utf8), at: "enlarge.py")
    try Archives.run("xz < tar | python3 enlarge.py > z", in: directory)
    let error = #expect(throws: InterchangeError.self) {
      try Archives.importing("z", of: directory)
    }
    #expect(error?.reason.contains("a dictionary of more than 1 GiB") == true, "\(error as Any)")
  }

  /// The error is that the window is too large, not that the format is wrong.
  @Test func aLimitAtTheStartIsNamed() throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write(PaxArchive.bytes([("a", [1])]), at: "tar")
    // Without a size in the header, the size of the window is at its position.
    try Archives.run("cat tar | zstd -q --ultra -22 --long=30 > z", in: directory)
    let error = #expect(throws: InterchangeError.self) {
      try Archives.importing("z", of: directory)
    }
    #expect(error?.reason.contains("a window of more than 128 MiB") == true, "\(error as Any)")
  }

  /// The first letters of a compressed format do not identify it, because a tar archive begins with
  /// a name.
  @Test(arguments: ["BZh9", "BZh91AY&S", "LZIP1", "]"])
  func aNameLikeASignatureIsATar(name: String) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write(PaxArchive.bytes([(name, [7])]), at: "tar")
    let (report, fixture) = try Archives.importing("tar", of: directory)
    #expect(report.isComplete, "\(report)")
    #expect(try fixture.bytes(ByteString("folders/x/\(name)"), report) == [7])
  }

  // MARK: - lzip and lzma

  /// Compresses a file; Debian does not install lzip by default.
  private static func pack(_ name: String, to target: String, as format: String) -> String {
    format == "lzip"
      ? "bsdtar --lzip --format raw -cf \(target) \(name)"
      : "xz --format=lzma < \(name) > \(target)"
  }

  /// Several members, and zeros after the last one, are valid; another archive and other data are
  /// reported.
  @Test(arguments: ["lzip", "lzma"]) func dataAfterAMemberIsRead(format: String) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write(PaxArchive.bytes([("a", [1]), ("b", [2])]), at: "tar")
    try Archives.run(
      """
      head -c 700 tar > start; tail -c +701 tar > rest
      \(Self.pack("start", to: "one", as: format)); \(Self.pack("rest", to: "two", as: format))
      \(Self.pack("tar", to: "whole", as: format))
      (cat one two; head -c 300000 /dev/zero) > all
      cat whole whole > twice; (cat whole; echo more) > more
      """, in: directory)
    let (report, fixture) = try Archives.importing("all", of: directory)
    #expect(report.isComplete, "\(report)")
    #expect(try fixture.bytes("folders/x/b", report) == [2])
    let (twice, _) = try Archives.importing("twice", of: directory)
    #expect(twice.damage?.reason.contains("another archive follows") == true, "\(twice)")
    let (more, _) = try Archives.importing("more", of: directory)
    #expect(more.damage?.reason == "data that is not \(format) follows its end", "\(more)")
    #expect(more.damage?.isSuspect == false && more.skipped.entryCount == 0)
  }

  /// The checksum and the sizes of lzip are after the end of the archive in the data.
  @Test(arguments: [20, 16, 8]) func aWrongChecksumOfLzipIsFound(offset: Int) throws {
    let directory = try TemporaryDirectory("archive")
    let zeros = [UInt8](repeating: 0, count: 1 << 20)
    try directory.write(PaxArchive.bytes([("a", [1]), ("b", [2])]) + zeros, at: "tar")
    try Archives.run(Self.pack("tar", to: "z", as: "lzip"), in: directory)
    let (whole, _) = try Archives.importing("z", of: directory)
    #expect(whole.isComplete, "\(whole)")
    var bytes = try directory.read("z")
    bytes[bytes.count - offset] ^= 1
    try directory.write(bytes, at: "z")
    let (report, fixture) = try Archives.importing("z", of: directory)
    #expect(report.damage?.reason == "its lzip data does not match its checksum", "\(report)")
    #expect(report.damage?.isSuspect == true)
    #expect(try fixture.bytes("folders/x/b", report) == [2])
  }

  /// All data that can be decoded from a truncated file is imported.
  @Test(arguments: [("lzip", 1), ("lzip", 8), ("lzip", 21), ("lzma", 1)])
  func aTruncatedLzipOrLzmaGivesAllFiles(format: String, count: Int) throws {
    let directory = try TemporaryDirectory("archive")
    var random = Seeded(12)
    let files = (0..<20).map { ("f\($0)", random.bytes(10_000)) }
    try directory.write(PaxArchive.bytes(files), at: "tar")
    let script = Self.pack("tar", to: "z", as: format) + "; head -c -\(count) z > cut"
    try Archives.run(script, in: directory)
    let (report, fixture) = try Archives.importing("cut", of: directory)
    #expect(report.damage?.reason == "its \(format) data is truncated", "\(report)")
    #expect(report.damage?.isSuspect == false && report.skipped.entryCount == 0)
    for (name, content) in files {
      #expect(try fixture.bytes(ByteString("folders/x/\(name)"), report) == content)
    }
  }
}
