import ArchiveStore
import Codecs
import Interchange
import SystemIO
import TestSupport
import Testing

/// An exported tree that is imported again is the same tree.
struct RoundTripTests {
  /// Entries with all properties that a pax archive can store.
  private static func items() -> [ListedSource.Item] {
    var random = Seeded(2)
    var rich = ListedSource.Item.file("dir/rich", random.bytes(300_000))
    rich.entry.permissions = 0o6754
    (rich.entry.owner, rich.entry.group) = (4_000_000_000, 2_097_152)
    rich.entry.modified = Timestamp(seconds: -12345, nanoseconds: 123_456_789)
    rich.entry.attributes = [
      .init(name: "system.posix_acl_access", value: accessList),
      .init(name: "user.%3D=%", value: [1]),
      .init(name: "user.binary", value: [0, 10, 61, 255]),
      .init(name: "user.large", value: random.bytes(3000)),
    ]
    var sparse = ListedSource.Item.entry("sparse", .file(size: 30_000_000))
    sparse.parts = [.hole(10_000_000), .bytes(random.bytes(70_000)), .hole(19_930_000)]
    var odd = ListedSource.Item.file("odd", "x")
    odd.entry.path = [ByteString([0xff, 10, 0x41] + [UInt8](repeating: 0xfe, count: 150))]
    var future = ListedSource.Item.file("future", "")
    future.entry.modified = Timestamp(seconds: 1 << 40)
    var root = ListedSource.Item.entry("", .directory)
    root.entry.permissions = 0o1777
    let long = ByteString(String(repeating: "long/", count: 60) + "t")
    return [
      root, rich, sparse, odd, future, .link("a-link", to: "dir/rich"),
      .entry("symbolic", .symlink(target: long)), .entry("pipe", .fifo),
      .entry("disk", .blockDevice(major: 8, minor: 300)), .entry("empty", .directory),
      .file(String(repeating: "deep/", count: 80) + "file", "deep"),
    ]
  }

  /// An ACL in the kernel's form: the owner, user 1000, the group, the mask, and all others.
  private static let accessList: [UInt8] =
    [2, 0, 0, 0] + [1, 0, 6, 0, 255, 255, 255, 255] + [2, 0, 4, 0, 232, 3, 0, 0]
    + [4, 0, 4, 0, 255, 255, 255, 255] + [16, 0, 4, 0, 255, 255, 255, 255]
    + [32, 0, 0, 0, 255, 255, 255, 255]

  /// If a format cannot store the first name of a file, the next one has the content.
  @Test func aLinkToAnOmittedNameIsAFile() throws {
    let fixture = try Fixture()
    var odd = ListedSource.Item.file("a", "text")
    odd.entry.path = [ByteString([0x61, 0xff])]
    var links = ["b", "c"].map { ListedSource.Item.link($0, to: "a") }
    for index in links.indices { links[index].entry.kind = .hardLink(to: odd.entry.path) }
    let report = try fixture.run([odd] + links)
    #expect(report.isComplete, "\(report.skipped.listed)")
    let target = try TemporaryDirectory("itunes")
    var sink = try MobileSyncSink(path: target.path("backup"), device: MobileSyncDevice())
    try fixture.export(report, below: "apps/com.example.app/data", to: &sink)
    #expect(sink.skipped.listed.map(\.reason) == ["its name is not valid UTF-8"])
    var source = try MobileSyncSource(try MobileSyncBackup(path: target.path("backup")))
    var sizes: [ByteString: UInt64] = [:]
    while let entry = try source.next() {
      if case .file(let size) = entry.kind { sizes[entry.joinedPath] = size }
    }
    #expect(sizes == ["apps/com.example.app/data/b": 4, "apps/com.example.app/data/c": 4])
    #expect(source.skipped.isEmpty, "\(source.skipped.listed)")
  }

  @Test(arguments: ArchiveCompression.allCases)
  func aTarIsImportedAsItWas(compression: ArchiveCompression) throws {
    let fixture = try Fixture()
    let first = try fixture.run(Self.items())
    #expect(first.isComplete, "\(first.skipped.listed)")
    var archive: [UInt8] = []
    var sink = try TarSink(
      to: { bytes throws(InterchangeError) in archive += bytes.indices.map { bytes[$0] } },
      compression: compression)
    try fixture.export(first, to: &sink)
    #expect(sink.skipped.isEmpty)
    let directory = try TemporaryDirectory("archive")
    try directory.write(archive, at: "a")
    // Holes are not written.
    #expect(archive.count < 3_000_000)
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a")))
    let second = try fixture.run(&source)
    #expect(second.isComplete, "\(second.skipped.listed)")
    #expect(first.snapshot.snapshot.tree == second.snapshot.snapshot.tree)
    if first.snapshot.snapshot.tree != second.snapshot.snapshot.tree {
      let (wanted, found) = (try fixture.entries(first), try fixture.entries(second))
      for path in Set(wanted.keys).union(found.keys) where wanted[path] != found[path] {
        let texts = [wanted[path], found[path]].map { String(describing: $0) }
        Issue.record("\(path): \(texts)")
      }
    }
  }

  /// Neither reading nor writing takes time for the zeros of a hole.
  @Test func aHoleOfAnySizeIsExported() throws {
    let fixture = try Fixture()
    var sparse = ListedSource.Item.entry("sparse", .file(size: (1 << 60) + 3))
    sparse.parts = [.hole(1 << 60), .bytes([1, 2, 3])]
    let first = try fixture.run([.entry("", .directory), sparse])
    let archive = try fixture.tar(first)
    #expect(archive.count < 20_000)
    let directory = try TemporaryDirectory("archive")
    try directory.write(archive, at: "a")
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a")))
    let second = try fixture.run(&source)
    #expect(second.isComplete, "\(second.skipped.listed)")
    #expect(first.snapshot.snapshot.tree == second.snapshot.snapshot.tree)
  }

  /// Names keep their bytes in the header and in pax records, which contain the long ones.
  @Test func namesKeepTheirBytes() throws {
    let fixture = try Fixture()
    let long = String(repeating: "n", count: 150)
    let names = [
      "caf\u{e9}", "cafe\u{301}", "\u{212a}", "K", "\u{212b}", "\u{c5}", "\u{e0041}tag",
      "tag", "\u{1f3f4}\u{e0067}\u{e007f}", "\u{1100}\u{1161}", "\u{ac00}",
    ]
    var items: [ListedSource.Item] = [.entry("", .directory)]
    for name in names + names.map({ long + $0 }) {
      items.append(.file(name, name))
      items.append(.entry("to-" + name, .symlink(target: ByteString(name))))
    }
    let first = try fixture.run(items)
    #expect(first.isComplete, "\(first.skipped.listed)")
    let directory = try TemporaryDirectory("archive")
    try directory.write(try fixture.tar(first), at: "a")
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a")))
    let second = try fixture.run(&source)
    #expect(second.isComplete, "\(second.skipped.listed)")
    #expect(try fixture.entries(second).count == fixture.entries(first).count)
    #expect(first.snapshot.snapshot.tree == second.snapshot.snapshot.tree)
  }

  @Test func ownersKeepTheirNames() throws {
    let fixture = try Fixture()
    var member = PaxMember(path: Array("f".utf8), kind: .file(size: 0), mode: 0o644)
    (member.owner, member.group) = (1001, 1002)
    (member.userName, member.groupName) = ("alice", "staff")
    let directory = try TemporaryDirectory("archive")
    try directory.write(member.header() + PaxMember.end, at: "a")
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a")))
    let report = try fixture.run(&source)
    #expect(report.snapshot.snapshot.users == [NameRecord(id: 1001, name: "alice")])
    let archive = try fixture.tar(report)
    #expect(String(decoding: archive, as: UTF8.self).contains("staff"))
  }

  /// GNU tar and bsdtar extract an export with its attributes, times, links and holes.
  @Test(arguments: ["tar", "bsdtar"])
  func otherProgramsExtractAnExport(program: String) throws {
    let fixture = try Fixture()
    let items = Self.items().filter { item in
      // Device files need privileges; distant times need a file system that supports them.
      if case .blockDevice = item.entry.kind { return false }
      return item.entry.path != ["future"]
    }
    let report = try fixture.run(items)
    let directory = try TemporaryDirectory("archive")
    try directory.write(try fixture.tar(report), at: "a.tar")
    _ = try Directory.make(path: directory.path("out"))
    let options = program == "tar" ? ["--xattrs", "--xattrs-include=user.*"] : ["--xattrs"]
    let outcome = try Program.run(
      program, ["-xpf", "a.tar", "-C", "out"] + options + ["--no-same-owner"],
      environment: ["LC_ALL": "C.UTF-8"], in: directory.url)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let found = try TreeRecord.all(in: directory, "out")
    let rich = try #require(found["dir/rich"])
    // libarchive 3.6 misreads fractions of seconds before 1970.
    if program == "tar" {
      #expect(rich.modified == Timestamp(seconds: -12345, nanoseconds: 123_456_789))
    }
    #expect(rich.attributes["user.binary"] == [0, 10, 61, 255])
    #expect(rich.attributes["user.large"]?.count == 3000)
    #expect(rich.content == Blake2b.hash(try fixture.bytes("folders/x/dir/rich", report)))
    #expect(rich.firstName == "a-link" && found["a-link"]?.firstName == "a-link")
    let sparse = try #require(found["sparse"])
    #expect(sparse.size == 30_000_000)
    #expect(sparse.content == Blake2b.hash(try fixture.bytes("folders/x/sparse", report)))
    let status = try Directory.open(path: directory.path("out")).status("sparse")
    #expect(status.allocated < 1_000_000)
  }

  /// Each program reads the lists from different records.
  @Test(arguments: [
    "tar --acls -xpf", "tar --xattrs --xattrs-include=* --acls -xpf", "bsdtar --acls -xpf",
  ])
  func otherProgramsExtractAccessLists(command: String) throws {
    let directory = try TemporaryDirectory("archive")
    _ = try Directory.make(path: directory.path("out"))
    let out = try Directory.open(path: directory.path("out"))
    do throws(SystemError) {
      try out.attributes.set("system.posix_acl_default", to: Self.accessList)
      try out.attributes.remove("system.posix_acl_default")
    } catch {
      return print("skipped: access control lists: \(error)")
    }
    let fixture = try Fixture()
    var file = ListedSource.Item.file("file", "x")
    file.entry.permissions = 0o640
    file.entry.attributes = [.init(name: "system.posix_acl_access", value: Self.accessList)]
    var folder = ListedSource.Item.entry("folder", .directory)
    folder.entry.attributes = [.init(name: "system.posix_acl_default", value: Self.accessList)]
    try directory.write(
      try fixture.tar(try fixture.run([.entry("", .directory), file, folder])), at: "a.tar")
    let words = command.split(separator: " ").map(String.init)
    let outcome = try Program.run(
      words[0], Array(words[1...]) + ["a.tar", "-C", "out", "--no-same-owner"],
      environment: ["LC_ALL": "C.UTF-8"], in: directory.url)
    #expect(outcome.code == 0, "\(outcome.errors)")
    let found = try TreeRecord.all(in: directory, "out")
    #expect(found["file"]?.attributes["system.posix_acl_access"] == Self.accessList)
    #expect(found["folder"]?.attributes["system.posix_acl_default"] == Self.accessList)
  }

  /// A time that a zip archive cannot store becomes the nearest one, not one a century later.
  @Test func zipHasTheNearestTimes() throws {
    let fixture = try Fixture()
    let times: [Int64] = [-2, 0, 2_147_483_647, 2_147_483_648, 1 << 33]
    let items = times.enumerated().map { number, seconds in
      var item = ListedSource.Item.file("f\(number)", "x")
      item.entry.modified = Timestamp(seconds: seconds, nanoseconds: 5)
      return item
    }
    let report = try fixture.run(items)
    var archive: [UInt8] = []
    var sink = try ZipSink { bytes throws(InterchangeError) in
      archive += bytes.indices.map { bytes[$0] }
    }
    try fixture.export(report, to: &sink)
    #expect(sink.skipped.listed.map(\.path) == ["f0", "f3", "f4"])
    let directory = try TemporaryDirectory("archive")
    try directory.write(archive, at: "a.zip")
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a.zip")), format: .zip)
    var found: [ByteString: Int64] = [:]
    while let entry = try source.next() {
      if case .file = entry.kind { found[entry.joinedPath] = entry.modified.seconds }
    }
    #expect(
      found == [
        "f0": 0, "f1": 0, "f2": 2_147_483_647, "f3": 2_147_483_647, "f4": 2_147_483_647,
      ])
  }

  @Test func zipKeepsFilesAndNamesTheRest() throws {
    let fixture = try Fixture()
    var items = Self.items().filter {
      $0.entry.path != ["future"] && $0.entry.path != ["sparse"]
    }
    for index in items.indices where items[index].entry.modified.seconds < 0 {
      items[index].entry.modified = Timestamp(seconds: 1_600_000_001, nanoseconds: 5)
    }
    let report = try fixture.run(items)
    var archive: [UInt8] = []
    var sink = try ZipSink { bytes throws(InterchangeError) in
      archive += bytes.indices.map { bytes[$0] }
    }
    try fixture.export(report, to: &sink)
    #expect(
      sink.skipped.listed.filter { !$0.isPropertyOnly }.map(\.path) == ["disk", "pipe"])
    #expect(sink.skipped.listed.filter(\.isPropertyOnly).map(\.path) == ["a-link", "dir/rich"])
    let directory = try TemporaryDirectory("archive")
    try directory.write(archive, at: "a.zip")
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a.zip")), format: .zip)
    let second = try fixture.run(&source)
    #expect(second.isComplete, "\(second.skipped.listed)")
    for name: ByteString in ["folders/x/dir/rich", "folders/x/a-link"] {
      #expect(try fixture.bytes(name, second) == fixture.bytes(name, report))
    }
    let (wanted, found) = (try fixture.entries(report), try fixture.entries(second))
    #expect(found["folders/x/symbolic"]?.node == wanted["folders/x/symbolic"]?.node)
    #expect(found["folders/x/dir/rich"]?.permissions == 0o6754)
    #expect(found["folders/x/dir/rich"]?.modified == Timestamp(seconds: 1_600_000_001))
    let tested = try Program.run("python3", ["-m", "zipfile", "-t", "a.zip"], in: directory.url)
    #expect(tested.code == 0 && tested.errors.isEmpty, "\(tested.output)\(tested.errors)")
  }

  /// A zip archive at the end of a tar archive is content, even if the flags of its names specify
  /// UTF-8.
  @Test func aZipArchiveInATarArchiveKeepsItsBytes() throws {
    let fixture = try Fixture()
    let directory = try TemporaryDirectory("archive")
    let script =
      "import zipfile\nwith zipfile.ZipFile('in.zip', 'w') as f: f.writestr('cafe\\u0301', 'x')"
    let made = try Program.run("python3", ["-B", "-c", script], in: directory.url)
    let packed = try Program.run("tar", ["-cf", "a.tar", "in.zip"], in: directory.url)
    #expect(made.code == 0 && packed.code == 0, "\(made.errors)\(packed.errors)")
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a.tar")))
    let report = try fixture.run(&source)
    #expect(try fixture.bytes("folders/x/in.zip", report) == directory.read("in.zip"))
  }

  /// In a zip archive, names keep their bytes, and two Unicode forms of one name are two files, in
  /// each reader.
  @Test(arguments: [ArchiveReader.Format.zip, .any])
  func zipNamesKeepTheirBytes(format: ArchiveReader.Format) throws {
    let fixture = try Fixture()
    var items: [ListedSource.Item] = [.entry("", .directory)]
    for name in ["caf\u{e9}", "cafe\u{301}", "\u{212b}", "\u{1100}\u{1161}", "a", "\u{e0041}"] {
      // A content that looks like a header with flags.
      items.append(.file(name, "PK\u{3}\u{4}\u{8}\u{8}\u{8}\u{8}\u{8}" + name))
      items.append(.entry("to-" + name, .symlink(target: ByteString(name))))
      items.append(.entry("in-" + name, .directory))
      items.append(.file("in-\(name)/\(name)", name))
    }
    for index in items.indices { items[index].entry.modified = Timestamp(seconds: 1_600_000_000) }
    let first = try fixture.run(items)
    var archive: [UInt8] = []
    var sink = try ZipSink { bytes throws(InterchangeError) in
      archive += bytes.indices.map { bytes[$0] }
    }
    try fixture.export(first, to: &sink)
    let directory = try TemporaryDirectory("archive")
    try directory.write(archive, at: "a")
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a")), format: format)
    let second = try fixture.run(&source)
    #expect(second.isComplete, "\(second.skipped.listed)")
    let (wanted, found) = (try fixture.entries(first), try fixture.entries(second))
    #expect(found.keys.sorted() == wanted.keys.sorted() && wanted.count > 24)
    for (path, entry) in wanted {
      if case .directory = entry.node { continue }
      #expect(found[path]?.node == entry.node, "\(path)")
    }
    // Archives with a damaged end or directory are either read or refused.
    for count in stride(from: 1, to: 150, by: 7) {
      var changed = archive
      changed[changed.count - count] ^= 0xFF
      for bytes in [archive.dropLast(count), changed[...]] {
        try directory.write(Array(bytes), at: "damaged")
        guard
          var damaged = try? ArchiveSource(
            ArchiveFile(path: directory.path("damaged")), format: format)
        else { continue }
        while (try? damaged.next()) != nil {}
      }
    }
  }

  /// In the mode of a file with an ACL, the group has the permissions of the mask, even if the
  /// list's entry for the group has others.
  @Test func aModeHasTheMaskOfTheList() throws {
    let fixture = try Fixture()
    var file = ListedSource.Item.file("file", "x")
    file.entry.permissions = 0o2760
    file.entry.attributes = [
      .init(
        name: "system.posix_acl_access",
        value: [2, 0, 0, 0] + [1, 0, 7, 0, 255, 255, 255, 255] + [2, 0, 6, 0, 232, 3, 0, 0]
          + [4, 0, 4, 0, 255, 255, 255, 255] + [16, 0, 6, 0, 255, 255, 255, 255]
          + [32, 0, 0, 0, 255, 255, 255, 255])
    ]
    let first = try fixture.run([.entry("", .directory), file])
    let directory = try TemporaryDirectory("archive")
    let archive = try fixture.tar(first)
    #expect(String(decoding: archive, as: UTF8.self).contains("SCHILY.acl.access"))
    try directory.write(archive, at: "a")
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a")))
    let second = try fixture.run(&source)
    #expect(first.snapshot.snapshot.tree == second.snapshot.snapshot.tree)
  }

  /// An ACL that is only in libarchive's form (`SCHILY.acl.access`) becomes the kernel's attribute.
  @Test func accessListsOfOtherProgramsAreAttributes() throws {
    let directory = try TemporaryDirectory("archive")
    try directory.write("x", at: "f")
    let file = try Directory.open(path: directory.path(""))
    try file.attributes(of: "f").set("system.posix_acl_access", to: Self.accessList)
    let made = try Program.run(
      "bsdtar", ["--format", "pax", "--acls", "-cf", "a.tar", "f"], in: directory.url)
    #expect(made.code == 0, "\(made.errors)")
    let text = String(decoding: try directory.read("a.tar"), as: UTF8.self)
    #expect(text.contains("SCHILY.acl.access"))
    var source = try ArchiveSource(try ArchiveFile(path: directory.path("a.tar")))
    let fixture = try Fixture()
    let report = try fixture.run(&source)
    let attributes = try #require(try fixture.entries(report)["folders/x/f"]).attributes
    #expect(
      attributes.contains(
        Attribute(name: "system.posix_acl_access", value: .inline(Self.accessList))))
  }
}
