import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// Damaged and crafted backups.
struct AndroidBackupHostileTests {
  private typealias Fixture = AndroidBackupFixture

  private func expect(
    _ kind: InterchangeError.Kind, of bytes: [UInt8], password: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let error = #expect(throws: InterchangeError.self, sourceLocation: sourceLocation) {
      _ = try Fixture.contents(of: Fixture.open(bytes, password: password))
    }
    #expect(error?.kind == kind, sourceLocation: sourceLocation)
  }

  private func header(_ lines: String...) -> [UInt8] {
    Array((["ANDROID BACKUP"] + lines).joined(separator: "\n").utf8)
  }

  /// Returns an uncompressed archive of members with any names, types and contents.
  private func backup(_ members: [(name: String, type: Character, content: String)]) -> [UInt8] {
    var bytes = header("5", "0", "none", "")
    for (name, type, content) in members {
      var block = AndroidTarHeader(
        prefix: "", path: ByteString(name), isDirectory: false,
        size: UInt64(content.utf8.count), permissions: 0o644, owner: 0, group: 0, modified: 0
      ).encoded()
      block[156] = type.asciiValue ?? 0
      block.replaceSubrange(148..<156, with: [UInt8](repeating: 0x20, count: 8))
      let sum = block.reduce(0) { $0 + Int($1) }
      let digits = String(sum, radix: 8)
      let text = String(repeating: "0", count: 6 - digits.count) + digits + "\0 "
      block.replaceSubrange(148..<156, with: Array(text.utf8))
      let padding = AndroidTarHeader.padding(after: UInt64(content.utf8.count))
      bytes += block + Array(content.utf8) + [UInt8](repeating: 0, count: padding)
    }
    return bytes + [UInt8](repeating: 0, count: 1024)
  }

  // MARK: - Header

  @Test func refusesInvalidHeaders() {
    expect(.unknownFormat, of: [])
    expect(.unknownFormat, of: Array("PK\u{3}\u{4}".utf8))
    expect(.unknownFormat, of: Array("ANDROID BACKUP 2\n5\n0\nnone\n".utf8))
    expect(.damaged, of: Array("ANDROID BACKUP".utf8))
    expect(.unsupported, of: header("0", "0", "none", ""))
    expect(.unsupported, of: header("6", "0", "none", ""))
    expect(.damaged, of: header("-1", "0", "none", ""))
    expect(.damaged, of: header("+5", "0", "none", ""))
    expect(.damaged, of: header("99999999999999999999", "0", "none", ""))
    expect(.unsupported, of: header("5", "2", "none", ""))
    expect(.unsupported, of: header("5", "0", "AES-128", ""))
    expect(.damaged, of: header("5", "0", "none"))
  }

  /// A header without an end is not read into memory.
  @Test func boundsTheHeader() {
    expect(.limitExceeded, of: header("5", "0", String(repeating: "n", count: 100_000)))
    expect(.limitExceeded, of: header("5") + [UInt8](repeating: 0x35, count: 8192))
  }

  private func encrypted(
    salt: String = "00", rounds: String = "10000", vector: String? = nil, blob: String? = nil
  ) -> [UInt8] {
    header(
      "5", "0", "AES-256", salt, "00", rounds, vector ?? String(repeating: "0", count: 32),
      blob ?? String(repeating: "0", count: 192), "")
  }

  @Test func boundsTheKeyDerivation() {
    expect(.limitExceeded, of: encrypted(rounds: "4294967295"), password: "x")
    expect(.limitExceeded, of: encrypted(rounds: "1000001"), password: "x")
    expect(.limitExceeded, of: encrypted(rounds: "0"), password: "x")
    expect(.damaged, of: encrypted(rounds: "10000000000000"), password: "x")
    expect(.wrongKey, of: encrypted(rounds: "1"), password: "x")
  }

  @Test func refusesInvalidKeys() {
    expect(.unsupported, of: encrypted(salt: ""), password: "x")
    expect(.unsupported, of: encrypted(salt: "000"), password: "x")
    expect(.damaged, of: encrypted(salt: "0g"), password: "x")
    expect(.unsupported, of: encrypted(vector: "00"), password: "x")
    expect(.damaged, of: encrypted(blob: String(repeating: "0", count: 34)), password: "x")
    expect(.unsupported, of: encrypted(blob: String(repeating: "0", count: 2000)), password: "x")
  }

  // MARK: - Data

  /// Each truncation is an error, and the data before it can be kept.
  @Test(arguments: [true, false], [nil, "secret"])
  func findsEachTruncation(isCompressed: Bool, password: String?) throws {
    let files = (0..<4).map {
      Fixture.file("apps/a.b/data/files/\($0)", content: String(repeating: "\($0)", count: 700))
    }
    let bytes = try Fixture.write(files, isCompressed: isCompressed, password: password).bytes
    let start = try #require(
      bytes.firstRange(of: password == nil ? "none\n".utf8 : "AES-256\n".utf8))
    for count in stride(
      from: bytes.count - 1, to: start.upperBound, by: password == nil ? -37 : -211)
    {
      let error = #expect(throws: InterchangeError.self) {
        _ = try Fixture.contents(of: Fixture.open(Array(bytes[..<count]), password: password))
      }
      #expect(error?.kind == .damaged)
    }
  }

  @Test func findsDamageOfCompressedData() throws {
    let bytes = try Fixture.write([Fixture.file("apps/a.b/data/files/x", content: "text")]).bytes
    let whole = try Fixture.contents(of: Fixture.open(bytes)).map(\.content)
    for position in 26..<bytes.count {
      var changed = bytes
      changed[position] ^= 0x10
      do {
        // A few bits have no meaning.
        let read = try Fixture.contents(of: Fixture.open(changed)).map(\.content)
        #expect(read == whole && position < bytes.count - 4)
      } catch let error as InterchangeError {
        #expect(error.kind == .damaged)
      }
    }
  }

  @Test func findsDamageOfHeadersInTheArchive() throws {
    let bytes = backup([("apps/a.b/f/x", "0", "text")])
    for position in [25, 25 + 100, 25 + 124, 25 + 150] {
      var changed = bytes
      changed[position] = UInt8(ascii: "9")
      expect(.damaged, of: changed)
    }
  }

  /// A file that expands a thousandfold is read in portions of the caller's size.
  @Test func readsABombInPortions() throws {
    var deflater = try Deflater()
    var data: [UInt8] = []
    let header = AndroidTarHeader(
      prefix: "apps/a.b/f", path: "bomb", isDirectory: false, size: 64 << 20, permissions: 0o644,
      owner: 0, group: 0, modified: 0)
    try deflater.deflate(header.encoded().span, appendingTo: &data)
    let zeros = [UInt8](repeating: 0, count: 1 << 20)
    for _ in 0..<64 { try deflater.deflate(zeros.span, appendingTo: &data) }
    try deflater.deflate([UInt8](repeating: 0, count: 1024).span, appendingTo: &data)
    try deflater.finish(appendingTo: &data)
    #expect(data.count < 128 << 10)
    let reader = try Fixture.open(self.header("5", "1", "none", "") + data)
    #expect(try reader.next()?.kind == .file(size: 64 << 20))
    var (portion, total) = ([UInt8](repeating: 1, count: 256 << 10), 0)
    while true {
      let count = try portion.withUnsafeMutableBytes { try reader.read(into: $0) }
      if count == 0 { break }
      total += count
    }
    #expect(total == 64 << 20)
    #expect(try reader.next() == nil)
  }

  /// If the archive is followed by endless zeros, they are not read to the end.
  @Test func boundsDataAfterTheEnd() throws {
    let bytes = backup([("apps/a.b/f/x", "0", "text")])
    _ = try Fixture.contents(of: Fixture.open(bytes + [UInt8](repeating: 0, count: 10_240)))
    expect(.damaged, of: bytes + [UInt8](repeating: 0, count: 2 << 20))
  }

  /// A second backup, appended with `cat`, is reported. The first one is complete.
  @Test(arguments: [true, false]) func reportsAnotherBackupAfterTheEnd(isCompressed: Bool) throws {
    let files = [Fixture.file("apps/a.b/data/files/x", content: "text")]
    let bytes = try Fixture.write(files, isCompressed: isCompressed).bytes
    let zeros = [UInt8](repeating: 0, count: 700)
    let whole = try Fixture.contents(of: Fixture.open(bytes + zeros)).map(\.entry.joinedPath)
    #expect(whole.last == "apps/a.b/data/files/x")
    for middle in [[], zeros] {
      let reader = try Fixture.open(bytes + middle + bytes)
      var paths: [ByteString] = []
      let error = #expect(throws: InterchangeError.self) {
        while let entry = try reader.next() { paths.append(entry.joinedPath) }
      }
      #expect(paths == whole)
      #expect(error?.kind == .damaged && error?.isSuspect == false)
      #expect(error?.reason.contains("follows") == true, "\(error?.reason ?? "")")
    }
  }

  // MARK: - Entries

  @Test func neverLeavesTheTreeOfAnEntry() throws {
    let names = [
      "apps/a.b/f/../../../../etc/passwd", "../x", "apps/../x", "/etc/passwd",
      "apps/../../shared/x",
      "apps/a.b/r/..", "other/x", "x", "shared/../x",
    ]
    let reader = try Fixture.open(backup(names.map { ($0, "0", "root") }))
    #expect(try reader.next() == nil)
    #expect(reader.skipped.listed.map(\.path) == names.map { ByteString($0) })
  }

  /// Leading slashes and `.` are dropped, as tar does; a file gets the path of its name.
  @Test func normalizesNames() throws {
    let reader = try Fixture.open(backup([("/apps//a.b/./f/x", "0", "text")]))
    #expect(try reader.next()?.joinedPath == "apps/a.b/data/files/x")
  }

  /// A package name that contains characters with a meaning in logical paths stays one component.
  @Test func escapesNamesOfPackages() throws {
    let reader = try Fixture.open(backup([("apps/a~b%2F/f/x", "0", "text")]))
    #expect(try reader.next()?.joinedPath == "apps/a%7Eb%252F/data/files/x")
    let stored = try AndroidBackupPath.stored(["apps", "a%7Eb%252F", "data", "files", "x"])
    #expect(stored?.package == "a~b%2F")
  }

  @Test func skipsSpecialFiles() throws {
    let reader = try Fixture.open(
      backup([
        ("apps/a.b/f/device", "3", ""), ("apps/a.b/f/fifo", "6", ""),
        ("apps/a.b/f/sparse", "S", "content"), ("apps/a.b/f/link", "2", ""),
        ("apps/a.b/f/good", "0", "good"),
      ]))
    let found = try Fixture.contents(of: reader)
    #expect(found.map(\.content) == [Array("good".utf8)])
    #expect(reader.skipped.entryCount == 4)
  }

  @Test func readsGNUNamesAndRefusesDamagedRecords() throws {
    let long = "apps/a.b/f/" + String(repeating: "n", count: 150)
    let reader = try Fixture.open(
      backup([("././@LongLink", "L", long + "\0"), ("apps/a.b/f/n", "0", "text")]))
    #expect(try reader.next()?.path.last?.count == 150)
    for record in ["9 path=x", "99 path=x\n", "x path=x\n", "8 path=\n", "11 size=-1\n", "6 abc\n"]
    {
      let result = Result {
        _ = try Fixture.contents(
          of: Fixture.open(backup([("PaxHeader", "x", record), ("apps/a.b/f/n", "0", "text")])))
      }
      if case .failure(let error) = result {
        #expect((error as? InterchangeError)?.kind == .damaged)
      } else {
        // A record with the correct length but without a name.
        #expect(record == "8 path=\n")
      }
    }
  }

  /// The part before the NUL could be the name of another file.
  @Test func namesWithNULsAreReported() throws {
    let record = "26 path=apps/a.b/f/x\0more\n"
    let reader = try Fixture.open(
      backup([
        ("././@LongLink", "L", "apps/a.b/f/x\0more\0"), ("apps/a.b/f/n", "0", "lost"),
        ("PaxHeader", "x", record), ("apps/a.b/f/n", "0", "lost"),
        ("apps/a.b/f/x", "0", "good"),
      ]))
    let found = try Fixture.contents(of: reader)
    #expect(found.map(\.content) == [Array("good".utf8)])
    #expect(reader.skipped.listed.map(\.reason).allSatisfy { $0.contains("NUL") })
    #expect(reader.skipped.entryCount == 2)
  }

  /// The entry is reported, and the entries after it are read.
  @Test func boundsExtendedHeaders() throws {
    let large = String(repeating: "x", count: 1_100_000)
    let comment = "70000 comment=" + String(large.prefix(70_000 - 15)) + "\n"
    let reader = try Fixture.open(
      backup([
        ("PaxHeader", "x", large), ("apps/a.b/f/pax", "0", "lost"),
        ("././@LongLink", "L", large), ("apps/a.b/f/long", "0", "lost"),
        ("PaxHeader", "g", large), ("apps/a.b/f/good", "0", "good"),
        ("PaxHeader", "x", comment), ("apps/a.b/f/other", "0", "other"),
      ]))
    let found = try Fixture.contents(of: reader)
    #expect(found.map(\.content) == [Array("good".utf8), Array("other".utf8)])
    #expect(reader.skipped.listed.map(\.path) == ["apps/a.b/f/pax", "apps/a.b/f/long"])
    #expect(reader.skipped.entryCount == 2)
  }

  @Test func ignoresInvalidManifests() throws {
    let manifests = [
      "", "2\na.b\n1\n1\n\n0\n0\n", "1\nother\n1\n1\n\n0\n0\n", "1\na.b\n1\n1\n\n0\n-1\n",
      "1\na.b\n1\n1\n\n0\n99999999\n", "1\na.b\nx\n1\n\n0\n0\n",
    ]
    for manifest in manifests {
      let reader = try Fixture.open(
        backup([("apps/a.b/_manifest", "0", manifest), ("apps/a.b/f/x", "0", "")]))
      #expect(try Fixture.contents(of: reader).count == 2)
      #expect(reader.manifests.isEmpty)
    }
  }
}
