import Codecs
import SystemIO
import TestSupport
import Testing

/// Trees that no writer creates: sandboxctl and recover.py refuse each by name and restore its
/// siblings.
struct HostileTreeTests {
  private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  /// Makes a root with a good file and a directory whose tree has the given entries.
  private static func root(
    _ forged: inout ForgedRepository, _ entries: [[UInt8]]
  ) -> Digest {
    root(&forged, forged.addTree(entries))
  }

  private static func root(_ forged: inout ForgedRepository, _ evil: Digest) -> Digest {
    forged.add(bytes("good\n"), kind: 0)
    return forged.addTree([
      ForgedEntry.directory(bytes("evil"), evil), ForgedEntry.file(bytes("good"), bytes("good\n")),
    ])
  }

  /// The restored names: the directory with the refused tree is empty.
  private static let left: [ByteString] = ["evil", "good"]

  @Test(arguments: [
    "..", ".", "", "/etc/evil", "a/../../../outside", "a/b", "a\0b",
    String(repeating: "x", count: 256),
  ]) func unsafeNamesAreRefused(name: String) throws {
    let hostile = try Hostile { forged in
      Self.root(&forged, [ForgedEntry.file(Self.bytes(name))])
    }
    try hostile.expectRefused(ours: ["evil"], theirs: ["damaged: evil: tree "], left: Self.left)
    #expect(try hostile.cli.names(in: "cage/ours/evil").isEmpty)
    #expect(try hostile.cli.names(in: "cage/theirs/evil").isEmpty)
  }

  /// A link and then a directory of the same name, whose files would be written through the link.
  @Test func duplicateNamesAreRefused() throws {
    let hostile = try Hostile { forged in
      let below = forged.addTree([ForgedEntry.file(Self.bytes("written"))])
      let link = ForgedEntry.link(Self.bytes("twice"), to: Self.bytes("../../.."))
      return Self.root(&forged, [link, ForgedEntry.directory(Self.bytes("twice"), below)])
    }
    try hostile.expectRefused(
      ours: ["twice"], theirs: ["twice is out of order or a duplicate"], left: Self.left)
  }

  @Test func namesOutOfOrderAreRefused() throws {
    let hostile = try Hostile { forged in
      Self.root(&forged, ["b", "a"].map { ForgedEntry.file(Self.bytes($0)) })
    }
    try hostile.expectRefused(ours: ["order"], theirs: ["a is out of order"], left: Self.left)
  }

  @Test(arguments: ["/etc/passwd", "../../outside", "a//b", "a/./b"])
  func unsafeHardLinkGroupsAreRefused(group: String) throws {
    let hostile = try Hostile { forged in
      Self.root(
        &forged, [ForgedEntry.file(Self.bytes("linked"), linkGroup: Self.bytes(group))])
    }
    try hostile.expectRefused(
      ours: ["evil"], theirs: ["not a valid path of a hard-link group"], left: Self.left)
  }

  @Test func deeplyNestedDirectoriesAreRefused() throws {
    let hostile = try Hostile { forged in
      var tree = forged.addTree([])
      for _ in 0..<100_000 { tree = forged.addTree([ForgedEntry.directory([0x64], tree)]) }
      return Self.root(&forged, tree)
    }
    try hostile.expectRefused(ours: ["4096"], theirs: ["4096 directories"], left: Self.left)
    let check = try hostile.theirs("repo verify")
    #expect(check.code == 13 && check.errors.contains("4096 directories"))
    #expect(check.peakMebibytes < Hostile.memoryBound)
    let list = try hostile.ours("ls latest --recursive")
    #expect(list.code == 13 && list.errors.contains("4096"))
    #expect(list.peakMebibytes < Hostile.memoryBound)
  }

  @Test func pathThatIsTooLongIsRefused() throws {
    let hostile = try Hostile { forged in
      let name = [UInt8](repeating: 0x61, count: 255)
      var tree = forged.addTree([])
      for _ in 0..<300 { tree = forged.addTree([ForgedEntry.directory(name, tree)]) }
      return Self.root(&forged, tree)
    }
    try hostile.expectRefused(ours: ["65536"], theirs: ["65536 bytes"], left: Self.left)
  }

  /// 2^60 paths from 60 trees: paths are not kept in memory, and each tree is verified once.
  @Test func sharedSubtreesAreVerifiedOnce() throws {
    let hostile = try Hostile { forged in
      var tree = forged.addTree([])
      for _ in 0..<60 {
        tree = forged.addTree(["a", "b"].map { ForgedEntry.directory(Self.bytes($0), tree) })
      }
      return tree
    }
    let check = try hostile.theirs("repo verify --read-data")
    #expect(check.code == 0 && check.output.contains("61 directories"))
    #expect(check.peakMebibytes < Hostile.memoryBound)
  }

  @Test func nonDeterministicCBORIsRefused() throws {
    let good = ForgedEntry.file(Self.bytes("name"))
    var key = CBOREncoder()
    key.beginMap()
    key.key(99)
    key.bool(true)
    key.endMap()
    let nested = ForgedEntry.entry(Self.bytes("name")) { encoder in
      encoder.key(200)
      encoder.encoded([UInt8](repeating: 0x81, count: 10_000) + [0])
    }
    let trees: [[UInt8]] = [
      [0xa1, 0x00, 0x9f] + good + [0xff],  // an indefinite length
      [0xa1, 0x18, 0x00, 0x81] + good,  // a key that is not in its shortest form
      [0xa1, 0x00, 0x81] + good + [0x00],  // trailing bytes
      [0xa1, 0x00, 0x81] + good.dropLast(),  // truncated
      [0xa1, 0x00, 0x9b] + [UInt8](repeating: 0xff, count: 8),  // an array of 2^64 - 1
      [0xa1, 0x00, 0x81] + key.finish(), [0xa1, 0x00, 0x80], [0xa1, 0x05, 0x80], [0x80],
      [0xa1, 0x00, 0x81] + nested,
      [0xa1, 0x00, 0x81, 0xa2, 0x00, 0x41, 0x61, 0x01, 0x00],  // an explicit default
      [0xa1, 0x00, 0x81, 0xa2, 0x01, 0x03, 0x00, 0x41, 0x61],  // keys out of order
    ]
    let hostile = try Hostile { forged in
      let evil = trees.enumerated().map { number, tree in
        ForgedEntry.directory(Self.bytes("evil-\(number + 10)"), forged.add(tree, kind: 1))
      }
      return forged.addTree(evil)
    }
    let names = (10..<(trees.count + 10)).map { ByteString("evil-\($0)") }
    try hostile.expectRefused(
      ours: names.map { "\($0)" }, theirs: names.map { "damaged: \($0): tree " }, left: names)
  }

  @Test func entriesThatContradictTheirContentAreRefused() throws {
    let blob = Self.bytes("three")
    let digest = Blake2b.hash(blob)
    let list = ForgedEntry.list(level: 0, [(5, digest)])
    let listed = Blake2b.hash(list)
    let evil: [[UInt8]] = [
      ForgedEntry.content(Self.bytes("a-size"), size: 6, [(5, digest)]),
      ForgedEntry.content(Self.bytes("b-huge"), size: 1 << 40, [(1 << 40, digest)]),
      ForgedEntry.content(
        Self.bytes("c-overflow"), size: 2, [(1 << 63, nil), (1 << 63, nil), (2, digest)]),
      ForgedEntry.content(Self.bytes("d-holes"), size: 9, [(4, nil), (5, nil)]),
      ForgedEntry.content(Self.bytes("e-level"), size: 5, [(5, listed)], level: 3),
      ForgedEntry.content(
        Self.bytes("f-many"), size: 257, (0..<257).map { _ in (1, digest) }),
    ]
    let hostile = try Hostile { forged in
      forged.add(blob, kind: 0)
      forged.add(list, kind: 2)
      let directories = evil.enumerated().map { number, entry in
        ForgedEntry.directory(Self.bytes("evil-\(number)"), forged.addTree([entry]))
      }
      return forged.addTree(directories)
    }
    let names = evil.indices.map { ByteString("evil-\($0)") }
    try hostile.expectRefused(
      ours: names.map { "\($0)" }, theirs: names.map { "damaged: \($0): tree " }, left: names)
  }

  /// These trees are valid, but the referenced blobs do not match. Only the files are lost.
  @Test func filesWithMismatchedBlobsAreLost() throws {
    let blob = Self.bytes("three")
    let digest = Blake2b.hash(blob)
    let deep = ForgedEntry.list(level: 1, [(5, Blake2b.hash([1]))])
    let hostile = try Hostile { forged in
      forged.add(blob, kind: 0)
      let list = forged.add(ForgedEntry.list(level: 0, [(5, digest)]), kind: 2)
      let level = forged.add(deep, kind: 2)
      return forged.addTree([
        ForgedEntry.content(Self.bytes("a-longer"), size: 6, [(6, digest)]),
        ForgedEntry.content(Self.bytes("b-list-as-data"), size: 5, [(5, list)]),
        ForgedEntry.content(Self.bytes("c-data-as-list"), size: 5, [(5, digest)], level: 1),
        ForgedEntry.content(Self.bytes("d-other-level"), size: 5, [(5, level)], level: 1),
        ForgedEntry.content(Self.bytes("e-other-size"), size: 4, [(4, list)], level: 1),
        ForgedEntry.content(Self.bytes("f-good"), size: 5, [(5, list)], level: 1),
        ForgedEntry.content(Self.bytes("g-missing"), size: 5, [(5, Blake2b.hash([9]))]),
      ])
    }
    let lost = ["a-longer", "b-list-as-data", "c-data-as-list", "d-other-level", "e-other-size"]
    try hostile.expectRefused(
      ours: lost + ["g-missing"], theirs: (lost + ["g-missing"]).map { "damaged: \($0): " },
      left: ["f-good"])
    #expect(try hostile.cli.directory.read("cage/theirs/f-good") == blob)
    #expect(try hostile.cli.directory.read("cage/ours/f-good") == blob)
  }
}
