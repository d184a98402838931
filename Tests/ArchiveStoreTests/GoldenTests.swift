import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The test vector `Tests/Vectors/repository-v1`: later versions read data of version 1.
struct GoldenTests {
  private static let directory = Shared.packageRoot.appendingPathComponent(
    "Tests/Vectors/repository-v1")

  /// Returns the lines of each snapshot in `expected.txt`, without its header.
  static func expected() throws -> [String: Set<String>] {
    let text = try String(
      contentsOf: directory.appendingPathComponent("expected.txt"), encoding: .utf8)
    var found: [String: Set<String>] = [:]
    var snapshot = ""
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      if line.hasPrefix("snapshot ") {
        snapshot = String(line.dropFirst(9))
        found[snapshot] = []
      } else {
        found[snapshot]?.insert(String(line))
      }
    }
    return found
  }

  private static func open() throws -> Repository {
    let path = ByteString(directory.appendingPathComponent("repository").path)
    return try Repository.open(LocalStorage(path: path))
  }

  @Test func everyEntryIsReadAsStored() throws {
    let repository = try Self.open()
    let expected = try Self.expected()
    let listing = try repository.snapshots()
    #expect(listing.damaged.isEmpty)
    #expect(listing.snapshots.map(\.id.hex).sorted() == expected.keys.sorted())
    for stored in listing.snapshots {
      let found = try Self.lines(of: stored, try repository.beginReading())
      let wanted = try #require(expected[stored.id.hex])
      #expect(wanted.count > 300)
      #expect(found.subtracting(wanted).isEmpty && wanted.subtracting(found).isEmpty)
    }
  }

  /// Returns the lines for the entries that a reader finds in a snapshot.
  static func lines(
    of stored: StoredSnapshot, _ reader: RepositoryReader
  ) throws -> Set<String> {
    var lines: Set<String> = []
    try reader.walk(stored.snapshot.tree) { path, entry in
      var detail = GoldenLine.detail(entry.node)
      if case .file(let content) = entry.node {
        var blocks = GoldenBlocks()
        try reader.readContent(content) { offset, bytes in
          blocks.add(bytes.withUnsafeBufferPointer { Array($0) }, at: Int(offset))
        }
        detail = "\(content.size) \(blocks.digest.hex)"
      }
      let attributes = try entry.attributes.map { ($0.name, try reader.value(of: $0)) }
      lines.insert(GoldenLine.line(entry, path: path, detail: detail, attributes: attributes))
      return .enter
    }
    return lines
  }

  @Test func unknownMembersAreKept() throws {
    let repository = try Self.open()
    let snapshots = try repository.snapshots().snapshots
    let (first, second) = (try #require(snapshots.first), try #require(snapshots.last))
    #expect(second.snapshot.parent == first.id)
    #expect(second.snapshot.unknown.map(\.name) == ["weather"])
    #expect(second.snapshot.excluded.map(\.path) == [ByteString([0x2f, 0xff])])
    let entry = try repository.beginReading().entry(
      at: "folders/golden/of a later version", in: second.snapshot.tree)
    #expect(entry?.extensions.map(\.key) == [128, 200])
    #expect(entry?.flags == GoldenSource.noDump)
  }

  @Test func vectorCoversTheWholeFormat() throws {
    let repository = try Self.open()
    let reader = try repository.beginReading()
    let tree = try #require(try repository.snapshots().snapshots.first).snapshot.tree
    var levels: Set<UInt8> = []
    var kinds: Set<String> = []
    var hasBlobAttribute = false
    try reader.walk(tree) { _, entry in
      kinds.insert("\(entry.node)".prefix { $0 != "(" }.description)
      if case .file(let content) = entry.node { levels.insert(content.level) }
      for attribute in entry.attributes {
        if case .blob = attribute.value { hasBlobAttribute = true }
      }
      return .enter
    }
    #expect(levels == [0, 1, 2])
    #expect(kinds.count == 7 && hasBlobAttribute)
    let pages = try #require(try reader.entry(at: "folders/golden/pages", in: tree))
    guard case .directory(let reference) = pages.node else { return #expect(Bool(false)) }
    #expect(try reader.openDirectory(reference).pages == 2)
    #expect(try LoadedIndex.loadAll(from: repository.storage).objects.count == 2)
  }
}

// MARK: - Recording

extension GoldenTests {
  /// Records the vector in `SANDBOXCTL_RECORD_VECTORS`. This is only for a new version of the
  /// format, whose vector is added beside the old one, which never changes.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["SANDBOXCTL_RECORD_VECTORS"] != nil))
  func vectorRecordsTheRepositoryOfThisVersion() throws {
    let target = try #require(ProcessInfo.processInfo.environment["SANDBOXCTL_RECORD_VECTORS"])
    let storage = try LocalStorage.create(path: ByteString(target + "/repository"))
    let repository = try Repository.create(in: storage, program: "sandboxctl, a test vector")
    var text = Self.head
    var parent: StoredSnapshot?
    for run in 1...2 {
      let session = try repository.beginWriting()
      var source = try GoldenSource(session)
      let tree = try source.writeAll(isSecond: run == 2)
      var snapshot = repository.makeSnapshot(tree, sequence: UInt64(run))
      if let parent { Self.addLaterThings(to: &snapshot, parent) }
      let stored = try session.finish(snapshot)
      parent = stored
      let id = run == 2 ? try Self.sign(stored.id, in: target) : stored.id
      text += "snapshot \(id.hex)\n" + source.lines.sorted().joined(separator: "\n") + "\n"
    }
    try text.write(toFile: target + "/expected.txt", atomically: true, encoding: .utf8)
    for name in ["reserve", "recover.py", "README.txt"] {
      try FileManager.default.removeItem(atPath: "\(target)/repository/\(name)")
    }
  }

  /// Adds a second line to a snapshot.
  private static func sign(_ id: Digest, in target: String) throws -> Digest {
    let directory = target + "/repository/snapshots/"
    let old = URL(fileURLWithPath: directory + id.hex + ".json")
    let bytes =
      Array(try Data(contentsOf: old)) + Array("{\"signature\":\"of a later version\"}\n".utf8)
    let signed = Blake2b.hash(bytes)
    try Data(bytes).write(to: URL(fileURLWithPath: directory + signed.hex + ".json"))
    try FileManager.default.removeItem(at: old)
    return signed
  }

  private static func addLaterThings(to snapshot: inout Snapshot, _ parent: StoredSnapshot) {
    snapshot.parent = parent.id
    snapshot.tags = ["tagged"]
    snapshot.excluded = [
      Exclusion(path: ByteString([0x2f, 0xff]), rule: "a rule", files: 1, bytes: 2)
    ]
    snapshot.unknown = [JSON.Member("weather", ["sky": "clear", "clouds": []])]
  }

  private static let head = """
    # A repository of version 1 with everything that docs/repository-format.md has, to test readers with.
    # It is in repository/. Missing there, as git keeps no empty directories and no one needs them here:
    # empty directories, README.txt, recover.py, reserve.
    #
    # For each snapshot follows a line with its id, then one for each entry, in columns with tabs between:
    # type, mode (octal), owner:group, modification time (seconds + fraction), detail, attributes,
    # hard-link group, path.
    #
    # detail: of a file its size and a hash; of a link its target; of a device major,minor.
    # The hash of a file is that of the number (eight bytes, little-endian) and the hash (32 bytes) of
    # each 4,096 bytes that are not all zeros, the last ones filled up with zeros.
    # attributes: name=first 16 digits of the value's hash, with commas between.
    # A hash is BLAKE2b-256. Bytes that are not printable ASCII, and backslashes, are written \\xNN.
    # Outcome: a reader finds these lines, and no others.

    """
}
