import ArchiveStore
import Codecs
import Interchange
import SystemIO
import TestSupport
import Testing

/// Archives of other programs: intact, hostile and truncated.
struct ArchiveSourceTests {
  static func run(_ script: String, in directory: TemporaryDirectory) throws {
    let outcome = try Program.run(
      "/bin/bash", ["-ec", script], environment: ["LC_ALL": "C.UTF-8"], in: directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  static func importing(
    _ path: ByteString, of directory: TemporaryDirectory, format: ArchiveReader.Format = .any
  ) throws -> (ImportReport, Fixture) {
    var source = try ArchiveSource(
      try ArchiveFile(path: directory.path(path)), format: format)
    let fixture = try Fixture()
    return (try fixture.run(&source), fixture)
  }

  private static func importing(bytes: [UInt8]) throws -> (ImportReport, Fixture) {
    let directory = try TemporaryDirectory("archive")
    try directory.write(bytes, at: "archive")
    return try importing("archive", of: directory)
  }

  /// A tree with names, links and content that formats treat differently.
  private static let tree = """
    mkdir -p tree/dir/empty; cd tree
    printf text > dir/file; printf 'caf\\303\\251' > $'caf\\303\\251'
    printf long > "$(printf 'n%.0s' {1..180})"
    ln dir/file twin; ln -s ../outside link
    chmod 4751 dir/file; touch -d '2020-02-03 04:05:06.789Z' dir/file
    cd ..
    """

  @Test(arguments: [
    ("tar", "tar --format=pax -cf a tree"), ("tar", "tar --format=gnu -cf a tree"),
    ("tar", "tar --format=ustar --exclude='nnn*' -czf a tree"),
    ("tar", "bsdtar --format pax -cJf a tree"),
    ("tar", "bsdtar --format pax --zstd -cf a tree"),
    ("cpio", "find tree | bsdcpio -o -H newc > a 2>/dev/null"),
    ("cpio", "find tree | bsdcpio -o -H odc > a 2>/dev/null"),
    ("7z", "bsdtar --format 7zip -cf a tree"), ("zip", "bsdtar --format zip -cf a tree"),
    ("zip", "zip -qry a.zip tree; mv a.zip a"),
  ])
  func theFormatIsRecognized(format: String, line: String) throws {
    let directory = try TemporaryDirectory("archive")
    try Self.run(Self.tree + "\n" + line, in: directory)
    let (report, fixture) = try Self.importing("a", of: directory)
    #expect(report.isComplete, "\(report.skipped.listed)")
    let entries = try fixture.entries(report)
    let base: ByteString = "folders/x/tree"
    #expect(try fixture.text(base.appending("dir/file"), report) == "text")
    #expect(try fixture.text(base.appending("twin"), report) == "text")
    #expect(try fixture.text(base.appending("caf\u{e9}"), report) == "caf\u{e9}")
    let long = ByteString(String(repeating: "n", count: 180))
    // ustar has no space for such a name.
    if !line.contains("ustar") {
      #expect(try fixture.text(base.appending(long), report) == "long")
    }
    #expect(entries[base.appending("link")]?.node == .symlink(target: "../outside"))
    #expect(entries[base.appending("dir/empty")].map { $0.node.kind } == .directory)
    let file = try #require(entries[base.appending("dir/file")])
    #expect(file.permissions == 0o4751 && file.modified.seconds == 1_580_702_706)
    if format == "tar" || format == "cpio" {
      #expect(file.linkGroup == base.appending("dir/file"))
      #expect(entries[base.appending("twin")]?.linkGroup == base.appending("dir/file"))
    }
  }

  /// An ISO 9660 image begins with zeros, like the end of a tar archive.
  @Test func zerosAreNotAnEmptyTar() throws {
    let directory = try TemporaryDirectory("archive")
    try Self.run(
      "mkdir tree; printf text > tree/file; bsdtar --format iso9660 -cf a tree", in: directory)
    let (report, fixture) = try Self.importing("a", of: directory)
    #expect(report.isComplete, "\(report.skipped.listed)")
    #expect(try fixture.text("folders/x/tree/file", report) == "text")
  }

  /// In a cpio archive as GNU cpio writes it, the last name of a file has its content.
  @Test func linksBeforeTheirContentGetIt() throws {
    // newc headers of three names of one inode; only the last one has data.
    func member(_ name: String, _ data: String) -> [UInt8] {
      func hex(_ number: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 8 - text.count) + text
      }
      let mode = name == "TRAILER!!!" ? 0 : 0o100644
      let fields = [7, mode, 0, 0, 3, 0, data.utf8.count, 0, 1, 0, 0, name.utf8.count + 1, 0]
      var bytes = Array(("070701" + fields.map(hex).joined() + name + "\0").utf8)
      while bytes.count % 4 != 0 { bytes.append(0) }
      bytes += Array(data.utf8)
      while bytes.count % 4 != 0 { bytes.append(0) }
      return bytes
    }
    let bytes =
      member("a", "") + member("b", "") + member("c", "content") + member("TRAILER!!!", "")
    let (report, fixture) = try Self.importing(bytes: bytes)
    for name: ByteString in ["folders/x/a", "folders/x/b", "folders/x/c"] {
      #expect(try fixture.text(name, report) == "content", "\(name)")
      #expect(try fixture.entries(report)[name]?.linkGroup == "folders/x/a", "\(name)")
    }
    // Without the last name, it is unknown whether the file is empty.
    let cut: [UInt8] = member("a", "") + member("b", "") + member("c", "content").prefix(60)
    let (damaged, _) = try Self.importing(bytes: cut)
    #expect(damaged.damage?.kind == .damaged)
    #expect(damaged.skipped.listed.map(\.path) == ["a"])
  }

  /// Whether only the last name has the content or all names have it, they stay names of one file.
  @Test(arguments: ["newc", "odc"])
  func allNamesOfAFileStayTogether(format: String) throws {
    let directory = try TemporaryDirectory("archive")
    let script = """
      mkdir t; printf content > t/a; ln t/a t/b; ln t/a t/c; ln t/a t/d
      find t | LC_ALL=C sort | bsdcpio -o -H \(format) > a 2>/dev/null
      """
    try Self.run(script, in: directory)
    let (report, fixture) = try Self.importing("a", of: directory)
    #expect(report.isComplete, "\(report.skipped.listed)")
    let entries = try fixture.entries(report)
    for name: ByteString in ["a", "b", "c", "d"] {
      let path = ByteString("folders/x/t").appending(name)
      #expect(try fixture.text(path, report) == "content", "\(name)")
      #expect(entries[path]?.linkGroup == "folders/x/t/a", "\(name)")
    }
  }

  /// After a damaged header, the next intact one is found after the content of the lost file.
  @Test func aDamagedHeaderCostsOneFile() throws {
    var random = Seeded(5)
    let first = PaxArchive.bytes([("a", [1])], isEnded: false)
    var rest = PaxArchive.bytes([("lost", random.bytes(1_000_000)), ("z", [3])])
    rest[0] ^= 1
    let (report, fixture) = try Self.importing(bytes: first + rest)
    #expect(report.damage == nil && !report.isComplete)
    #expect(report.skipped.entryCount == 1, "\(report.skipped.listed)")
    #expect(report.skipped.listed.first?.reason.contains("are damaged") == true)
    #expect(try fixture.bytes("folders/x/a", report) == [1])
    #expect(try fixture.bytes("folders/x/z", report) == [3])
  }

  @Test func anotherFileIsNotAnArchive() throws {
    for bytes in [Array("no archive".utf8), [], Seeded(1).bytes(copying: 5000)] {
      let error = #expect(throws: InterchangeError.self) { try Self.importing(bytes: bytes) }
      #expect(error?.kind == .unknownFormat, "\(String(describing: error))")
    }
  }

  @Test func aTarIsNoZip() throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write(PaxArchive.bytes([("a", [1])]), at: "a.tar")
    let error = #expect(throws: InterchangeError.self) {
      try Self.importing("a.tar", of: directory, format: .zip)
    }
    #expect(error?.kind == .unknownFormat)
  }

  /// Names that lead outside are skipped or lose their leading slash; no file of the host is
  /// changed.
  @Test func namesThatLeadOutsideAreNotFollowed() throws {
    let (report, fixture) = try Self.importing(
      bytes: PaxArchive.bytes([
        ("../up", [1]), ("a/../../up", [1]), ("/abs/file", [2]), ("./dot/./file", [3]), ("..", [1]),
        ("a//b", [4]), ("...", [5]),
      ]))
    #expect(!report.isComplete)
    #expect(report.skipped.listed.map(\.path) == ["../up", "a/../../up", ".."])
    #expect(report.skipped.listed.allSatisfy { $0.reason.contains("..") })
    let files = try fixture.entries(report).filter { $0.value.node.kind == .file }
    #expect(
      files.keys.sorted() == [
        "folders/x/...", "folders/x/a/b", "folders/x/abs/file", "folders/x/dot/file",
      ])
  }

  @Test func aNameThatIsTooLongIsSkipped() throws {
    let long = String(repeating: "n", count: 256)
    let deep = String(repeating: "d/", count: 4100) + "f"
    let wide = String(repeating: String(repeating: "w", count: 250) + "/", count: 260) + "f"
    let (report, fixture) = try Self.importing(
      bytes: PaxArchive.bytes([(long, [1]), (deep, [1]), (wide, [1]), ("ok", [2])]))
    #expect(report.skipped.entryCount == 3)
    #expect(try fixture.bytes("folders/x/ok", report) == [2])
  }

  /// A snapshot can contain paths that are longer than a system call accepts, and `export tar`
  /// writes them, so an import accepts them as well.
  @Test(arguments: [(1, 2_000), (200, 40), (255, 250)])
  func aPathLongerThanASystemCallTakesIsImported(length: Int, depth: Int) throws {
    let name = String(repeating: "d", count: length)
    let path = String(repeating: name + "/", count: depth) + "f"
    let (report, fixture) = try Self.importing(
      bytes: PaxArchive.bytes([(path, [1]), ("ok", [2])]))
    #expect(report.isComplete, "\(report.skipped.entryCount)")
    #expect(try fixture.bytes(ByteString("folders/x/\(path)"), report) == [1])
    #expect(try fixture.bytes("folders/x/ok", report) == [2])
  }

  /// For the kernel, the largest 32-bit number means "unchanged": a file restored with it would
  /// belong to root, as would one whose negative number became 0.
  @Test(arguments: ["PAX_FORMAT", "GNU_FORMAT"])
  func anOwnerThatLinuxDoesNotHaveIsNamed(format: String) throws {
    let directory = try TemporaryDirectory("archive")
    let script = """
      import tarfile
      with tarfile.open("a", "w", format=tarfile.\(format)) as tar:
        for name, uid, gid in ("a", 1 << 32, 7), ("b", (1 << 32) - 1, -2), ("c", (1 << 32) - 2, 0):
          member = tarfile.TarInfo(name)
          member.uid, member.gid, member.uname = uid, gid, "ada"
          tar.addfile(member)
      """
    try directory.write(Array(script.utf8), at: "make.py")
    try Self.run("python3 make.py", in: directory)
    let (report, fixture) = try Self.importing("a", of: directory)
    let entries = try fixture.entries(report)
    let owners = ["a", "b", "c"].map { entries[ByteString("folders/x/\($0)")]?.owner }
    #expect(owners == [65_534, 65_534, 4_294_967_294])
    let groups = ["a", "b", "c"].map { entries[ByteString("folders/x/\($0)")]?.group }
    #expect(groups == [7, 65_534, 0])
    #expect(report.isComplete && report.skipped.propertyCount == 3, "\(report.skipped.listed)")
    #expect(report.skipped.listed.first?.reason.contains("4294967296") == true)
    #expect(report.snapshot.snapshot.users.map(\.id) == [4_294_967_294])
  }

  /// The entries before the end of a truncated archive are imported, and never a part of a file.
  @Test func intactEntriesOfATruncatedArchiveAreImported() throws {
    var random = Seeded(3)
    let whole = PaxArchive.bytes([
      ("a", [1]), ("b", random.bytes(100_000)), ("c", random.bytes(100_000)),
    ])
    for length in [50_000, 102_400 + 512, 150_000, 103_000] {
      let (report, fixture) = try Self.importing(bytes: Array(whole.prefix(length)))
      #expect(report.damage?.kind == .damaged, "\(length)")
      let names = try fixture.entries(report).filter { $0.value.node.kind == .file }.keys.sorted()
      let all: [ByteString] = ["folders/x/a", "folders/x/b"]
      let expected = length < 102_000 ? Array(all.prefix(1)) : all
      #expect(names == expected, "\(length)")
    }
  }

  /// Only the checksum at the end of gzip data detects some damage, which may be in any file.
  @Test func aWrongChecksumOfGzipIsFound() throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write(PaxArchive.bytes([("a", [1]), ("b", [2])]), at: "tar")
    try Self.run("gzip < tar > one; (gzip; gzip < tar) < tar > two", in: directory)
    for name: ByteString in ["one", "two"] {
      let whole = try directory.read(name)
      // The CRC-32 and the size at the end of the last gzip member; for `two`, that member is after
      // the end of the tar archive.
      for offset in [whole.count - 8, whole.count - 1] {
        var bytes = whole
        bytes[offset] ^= 1
        let (report, fixture) = try Self.importing(bytes: bytes)
        #expect(report.damage?.kind == .damaged && report.damage?.isSuspect == true, "\(report)")
        #expect(report.snapshot.snapshot.unreadable.first?.note.contains("any file") == true)
        #expect(try fixture.bytes("folders/x/b", report) == [2])
      }
    }
  }

  /// The content checksum detects damage of lz4 data, even with linked blocks. A block checksum
  /// detects damage before the block is decoded.
  @Test(arguments: ["-B4", "-B4 -BD", "-9 --content-size", "-B5 -BX"])
  func aWrongChecksumOfLZ4IsFound(options: String) throws {
    let directory = try TemporaryDirectory("archive")
    var random = Seeded(4)
    let text = (0..<60_000).flatMap { Array("\($0 % 777) ".utf8) }
    let content = random.bytes(100_000) + text
    try directory.write(PaxArchive.bytes([("a", content), ("b", [2])]), at: "tar")
    try Self.run("lz4 -q \(options) < tar > z", in: directory)
    let (whole, fixture) = try Self.importing("z", of: directory)
    #expect(whole.isComplete, "\(whole)")
    #expect(try fixture.bytes("folders/x/a", whole) == content)
    var bytes = try directory.read("z")
    bytes[bytes.count - 1] ^= 1
    let (report, _) = try Self.importing(bytes: bytes)
    #expect(report.damage?.isSuspect == true, "\(report)")
    #expect(report.damage?.reason == "its lz4 data does not match its checksum", "\(report)")
    let (cut, _) = try Self.importing(bytes: Array(bytes.dropLast(3)))
    #expect(cut.damage?.reason == "its lz4 data is truncated", "\(cut)")
    #expect(cut.skipped.entryCount == 0 && cut.damage?.isSuspect == false)
  }

  /// All data that the program recovers from a truncated file is imported.
  @Test(arguments: ["gzip", "bzip2", "xz"], [1, 4, 8])
  func aTruncatedStreamGivesAllFiles(program: String, count: Int) throws {
    let directory = try TemporaryDirectory("archive")
    var random = Seeded(8)
    let files = (0..<20).map { ("f\($0)", random.bytes(10_000)) }
    try directory.write(PaxArchive.bytes(files), at: "tar")
    try Self.run("\(program) < tar | head -c -\(count) > cut", in: directory)
    let (report, fixture) = try Self.importing("cut", of: directory)
    #expect(report.damage?.reason.contains("truncated") == true, "\(report)")
    #expect(report.damage?.isSuspect == false && report.skipped.entryCount == 0)
    for (name, content) in files {
      #expect(try fixture.bytes(ByteString("folders/x/\(name)"), report) == content)
    }
  }

  /// Several streams, and zeros after the last one, are valid, as for the programs; other data is
  /// not, and everything before it is intact.
  @Test(arguments: ["gzip", "bzip2", "xz"]) func dataAfterAStreamIsRead(program: String) throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write(PaxArchive.bytes([("a", [1]), ("b", [2])]), at: "tar")
    try Self.run(
      """
      (head -c 700 tar | \(program); tail -c +701 tar | \(program); head -c 300000 /dev/zero) > all
      (\(program) < tar; echo more) > more
      """, in: directory)
    let (report, fixture) = try Self.importing("all", of: directory)
    #expect(report.isComplete, "\(report)")
    #expect(try fixture.bytes("folders/x/b", report) == [2])
    let (other, _) = try Self.importing("more", of: directory)
    #expect(other.damage?.reason == "data that is not \(program) follows its end", "\(other)")
    #expect(other.damage?.isSuspect == false && other.skipped.entryCount == 0)
  }

  /// A wrong large size uses neither memory nor disk space.
  @Test func anAbsurdSizeCountsAsDamage() throws {
    var member = PaxMember(path: Array("big".utf8), kind: .file(size: 1 << 62), mode: 0o644)
    member.modified = 1
    let bytes =
      PaxArchive.bytes([("a", [1])], isEnded: false) + member.header()
      + [UInt8](repeating: 9, count: 5120)
    let (report, fixture) = try Self.importing(bytes: bytes)
    #expect(report.damage != nil && report.skipped.listed.map(\.path) == ["big"])
    #expect(try fixture.entries(report)["folders/x/a"] != nil)
  }

  /// A file whose last hole is larger than any disk is stored as a hole.
  @Test func aHugeHoleCostsNothing() throws {
    var member = PaxMember(path: Array("hole".utf8), kind: .file(size: 1 << 61), mode: 0o644)
    member.dataRanges = [0..<512]
    let bytes = member.header() + [UInt8](repeating: 1, count: 512) + PaxMember.end
    let (report, fixture) = try Self.importing(bytes: bytes)
    #expect(report.isComplete, "\(report)")
    let entry = try #require(try fixture.entries(report)["folders/x/hole"])
    guard case .file(let content) = entry.node else { return }
    #expect(content.size == 1 << 61 && content.pieces.last == .hole(length: 1 << 61 - 512))
  }

  @Test func damageWithinAZipCostsOneFile() throws {
    let directory = try TemporaryDirectory("archive")
    var random = Seeded(6)
    for name in ["a", "b", "c"] {
      try directory.write(random.bytes(50_000), at: ByteString(name))
    }
    try Self.run("zip -q0 z.zip a b c", in: directory)
    var bytes = try directory.read("z.zip")
    bytes[75_000] ^= 1
    try directory.write(bytes, at: "z.zip")
    let (report, fixture) = try Self.importing("z.zip", of: directory, format: .zip)
    #expect(report.skipped.listed.map(\.path) == ["b"] && report.damage == nil)
    #expect(try fixture.entries(report)["folders/x/c"] != nil)
  }

  @Test func encryptedEntriesAreNamed() throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("secret", at: "a")
    try directory.write("plain", at: "b")
    try Self.run("zip -q -P word z.zip a; zip -q z.zip b", in: directory)
    let (report, fixture) = try Self.importing("z.zip", of: directory)
    #expect(report.skipped.listed == [SkippedEntry(path: "a", reason: "it is encrypted")])
    #expect(try fixture.text("folders/x/b", report) == "plain")
  }
}

/// Archives of files, written without a check of their names.
enum PaxArchive {
  static func bytes(_ files: [(name: String, content: [UInt8])], isEnded: Bool = true) -> [UInt8] {
    var bytes: [UInt8] = []
    for (name, content) in files {
      let member = PaxMember(
        path: Array(name.utf8), kind: .file(size: UInt64(content.count)), mode: 0o644)
      bytes += member.header() + content
      bytes += [UInt8](repeating: 0, count: PaxMember.padding(after: UInt64(content.count)))
    }
    return isEnded ? bytes + PaxMember.end : bytes
  }
}

extension Seeded {
  /// Returns random bytes from a copy of the generator.
  func bytes(copying count: Int) -> [UInt8] {
    var generator = self
    return generator.bytes(count)
  }
}
