import Foundation
import SystemIO
import TestSupport
import Testing

/// A store of an encrypted repository that exchanges, removes and replays objects, or changes their
/// dates, none of which needs a key. The rows of SECURITY.md, "Signatures", that concern whole
/// files are here, the others in `SnapshotSignatureTests`, `SignatureTests` and `TrustTests`.
struct HostileEncryptedStoreTests {
  private let keys: KeyFixture
  private static let key = "--passphrase-file old"

  private var cli: CommandLine { keys.cli }

  /// Makes two backups whose signer is trusted. `first` is the store after the first one, and
  /// `first-tree` the data that was backed up.
  init() throws {
    keys = try KeyFixture()
    try keys.writeTree(files: 4, seed: 31)
    try keys.backUp(Self.key)
    try keys.succeed("key trust --repo repo \(Self.key)")
    try cli.copy("repo", to: "first")
    try cli.copy("tree", to: "first-tree")
    try cli.directory.write("changed", at: "tree/1")
    try keys.backUp(Self.key)
  }

  private func check(_ location: SourceLocation = #_sourceLocation) throws -> Int32 {
    let outcome = try keys.run("check --read-data --repo repo \(Self.key)")
    #expect([0, 13].contains(outcome.code), "\(outcome)", sourceLocation: location)
    return outcome.code
  }

  /// Expects a snapshot to restore the data of the first backup.
  private func expectFirst(
    _ snapshot: String, _ location: SourceLocation = #_sourceLocation
  ) throws {
    try keys.succeed(
      "restore \(snapshot):folders/tree --to back --repo repo --quiet \(Self.key)")
    try ChangeDetector.expectSame(cli.directory, "first-tree", "back")
    try cli.directory.directory.removeTree("back")
  }

  /// The stored objects of a kind in a copy of the store.
  private func objects(_ kind: String, in store: String) throws -> Set<String> {
    let root = cli.directory.string + "/\(store)/\(kind)"
    return Set(
      try FileManager.default.subpathsOfDirectory(atPath: root).filter { $0.hasSuffix(".age") }
        .map { "\(kind)/\($0)" })
  }

  /// Stores objects again that the store had after the first backup. Returns their number.
  private func replay(_ kind: String) throws -> Int {
    let old = try objects(kind, in: "first").subtracting(objects(kind, in: "repo"))
    for path in old {
      try cli.directory.write(
        cli.directory.read(ByteString("first/\(path)")), at: ByteString("repo/\(path)"))
    }
    return old.count
  }

  @Test func exchangedPacksAreFound() throws {
    let packs = try objects("packs", in: "repo").sorted().map { ByteString("repo/\($0)") }
    let bytes = try packs.map { try cli.directory.read($0) }
    #expect(packs.count == 4)
    for (pack, other) in zip(packs, bytes.dropFirst() + [bytes[0]]) {
      try cli.directory.write(other, at: pack)
    }
    #expect(try check() == 13)
    let outcome = try keys.run(
      "restore latest:folders/tree --to back --repo repo --quiet \(Self.key)")
    #expect(outcome.code == 13, "\(outcome)")
    // All restored data is correct.
    for name in (try? cli.names(in: "back")) ?? [] {
      #expect(
        try cli.directory.read(ByteString("back").appending(name))
          == cli.directory.read(ByteString("tree").appending(name)))
    }
  }

  @Test func removedPackIsFound() throws {
    let pack = try #require(
      try cli.packs(suffix: ".age").max { try Self.size($0) < Self.size($1) })
    try FileManager.default.removeItem(atPath: pack)
    #expect(try check() == 13)
    let outcome = try keys.run(
      "restore latest:folders/tree --to back --repo repo --quiet \(Self.key)")
    #expect(outcome.code == 13, "\(outcome)")
  }

  private static func size(_ path: String) throws -> Int {
    try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
  }

  /// An index from another time under the name of the current one.
  @Test func exchangedIndexIsFound() throws {
    let old = try #require(try objects("index", in: "first").first)
    let new = try #require(try objects("index", in: "repo").first)
    try #require(old != new)
    try cli.directory.write(
      cli.directory.read(ByteString("first/\(old)")), at: ByteString("repo/\(new)"))
    #expect(try check() == 13)
    // Packs are found by their own tables, or by this host's copy of the index.
    try keys.expectRestored(Self.key)
    try cli.directory.directory.removeTree("home/.cache")
    try keys.expectRestored(Self.key)
  }

  /// Objects that were removed are stored again: a snapshot that is forgotten, packs that were
  /// pruned and the index that named them.
  @Test func replayedObjectsAreHarmless() throws {
    try keys.succeed("forget --keep-last 1 --prune --max-unused 0 --repo repo --quiet \(Self.key)")
    #expect(try cli.jsonLines("snapshots --json --repo repo \(Self.key)").count == 1)
    for kind in ["snapshots", "index", "packs"] { #expect(try replay(kind) > 0, "\(kind)") }
    let listed = try cli.jsonLines("snapshots --json --repo repo \(Self.key)")
    #expect(listed.count == 2 && listed.allSatisfy { $0["trusted"] as? Bool == true })
    #expect(try check() == 0)
    try keys.expectRestored(Self.key)
    try expectFirst("latest~1")
    try keys.backUp(Self.key)
    #expect(try check() == 0)
  }

  /// The order of snapshots is that of their signed times and numbers.
  @Test func timesOfFilesDoNotMatter() throws {
    let line = "snapshots --json --repo repo \(Self.key)"
    let before = try cli.jsonLines(line).map { $0["id"] as? String }
    #expect(before.count == 2)
    for (number, id) in before.enumerated() {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000 - Double(number) * 86_400)],
        ofItemAtPath: cli.directory.string + "/repo/snapshots/\(id ?? "").json.age")
    }
    #expect(try cli.jsonLines(line).map { $0["id"] as? String } == before)
    try keys.expectRestored(Self.key)
    #expect(try check() == 0)
  }

  /// The only attack that cannot be seen in the store (SECURITY.md): the newest snapshot is
  /// removed, or the whole store is an old one. The next backup is complete.
  @Test(arguments: [false, true]) func oldStoreIsNotFound(isWhole: Bool) throws {
    if isWhole {
      try cli.directory.directory.removeTree("repo")
      try cli.copy("first", to: "repo")
    } else {
      let new = try objects("snapshots", in: "repo").subtracting(objects("snapshots", in: "first"))
      #expect(new.count == 1)
      for path in new { try cli.directory.directory.remove(ByteString("repo/\(path)")) }
    }
    #expect(try check() == 0)
    try expectFirst("latest")
    try keys.backUp(Self.key)
    try keys.expectRestored(Self.key)
    #expect(try check() == 0)
  }
}
