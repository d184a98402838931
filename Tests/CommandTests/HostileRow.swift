import Codecs
import TestSupport
import Testing

/// An invalid part of a repository, the commands that read it, and their messages.
struct HostileRow: CustomTestStringConvertible, Sendable {
  let testDescription: String
  /// The commands that must refuse it.
  let refusers: Set<String>
  /// The commands that succeed with a warning.
  var warners: Set<String> = []
  /// The words of their messages.
  let words: [String]
  /// The commands to run.
  var commands = Self.commands
  let forge: @Sendable () -> ForgedRepository

  static let commands = [
    "check", "check --read-data", "snapshots", "ls latest --recursive", "diff latest~1 latest",
    "find **", "dump latest", "stats latest", "stats",
  ]

  /// The commands that read the trees of the latest snapshot.
  static let treeReaders: Set<String> = Set(commands).subtracting(["snapshots", "stats"])
  /// The commands that read file content.
  static let dataReaders: Set<String> = ["check --read-data", "dump latest"]

  static let all = trees + wrongLocations + indexes + contents + frames + snapshots

  static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
  static let good = bytes("good\n")
  static let other = bytes("other\n")

  /// Forges two snapshots: one of a good file, and one of the good file and the entries returned by
  /// `body`.
  private static func forge(
    _ body: (inout ForgedRepository) -> [[UInt8]]
  ) -> ForgedRepository {
    var forged = ForgedRepository()
    forged.add(good, kind: 0)
    let file = ForgedEntry.file(bytes("good"), good)
    forged.addSnapshot(forged.addTree([file]))
    let evil = body(&forged)
    forged.addSnapshot(forged.addTree(evil + [file]))
    return forged
  }

  // MARK: - Trees

  private static func tree(
    _ name: String, _ words: [String],
    _ make: @escaping @Sendable (inout ForgedRepository) -> Digest
  ) -> HostileRow {
    HostileRow(
      testDescription: name, refusers: treeReaders, words: ["evil"] + words,
      forge: { forge { [ForgedEntry.directory(bytes("evil"), make(&$0))] } })
  }

  private static let trees =
    ["..", ".", "", "/etc/evil", "a/../../outside", "a\0b"].map { name in
      tree("the name '\(name.filter { $0 != "\0" })'", []) {
        $0.addTree([ForgedEntry.file(bytes(name))])
      }
    } + [
      tree("a name twice", []) { forged in
        forged.addTree([
          ForgedEntry.link(bytes("twice"), to: bytes("../..")),
          ForgedEntry.directory(bytes("twice"), forged.addTree([])),
        ])
      },
      tree("100,000 nested directories", []) { forged in
        var tree = forged.addTree([])
        for _ in 0..<100_000 { tree = forged.addTree([ForgedEntry.directory([0x64], tree)]) }
        return tree
      },
      tree("a path of 76,800 bytes", []) { forged in
        let name = [UInt8](repeating: 0x61, count: 255)
        var tree = forged.addTree([])
        for _ in 0..<300 { tree = forged.addTree([ForgedEntry.directory(name, tree)]) }
        return tree
      },
      tree("a file's bytes as a tree", []) { forged in
        forged.add([0xa1, 0, 0x81] + ForgedEntry.link(bytes("x"), to: bytes("/etc")), kind: 0)
      },
      tree("an array of 2^64 - 1", []) { forged in
        forged.add([0xa1, 0x00, 0x9b] + [UInt8](repeating: 0xff, count: 8), kind: 1)
      },
      HostileRow(
        testDescription: "a directory that is too deep at one of its paths",
        refusers: ["check"],
        words: ["evil"], commands: ["check"], forge: sharedDepth),
      HostileRow(
        testDescription: "a tree that contains itself", refusers: treeReaders, words: ["evil"],
        forge: ownTree),
    ]

  /// Makes 3,000 nested directories, both in the root and below 2,000 others, before and after
  /// these in name order.
  @Sendable private static func sharedDepth() -> ForgedRepository {
    forge { forged in
      var tree = forged.addTree([])
      for _ in 0..<3000 { tree = forged.addTree([ForgedEntry.directory([0x64], tree)]) }
      let shared = tree
      for _ in 0..<2000 { tree = forged.addTree([ForgedEntry.directory([0x64], tree)]) }
      return [
        ForgedEntry.directory(bytes("a"), shared), ForgedEntry.directory(bytes("evil"), tree),
        ForgedEntry.directory(bytes("f"), shared),
      ]
    }
  }

  /// Makes a tree that contains itself. No such hash can be computed, so the index maps the inner
  /// blob to the outer one.
  @Sendable private static func ownTree() -> ForgedRepository {
    let inner: [UInt8] = [0xa0]
    var forged = forge { [ForgedEntry.directory(bytes("evil"), $0.add(inner, kind: 1))] }
    forged.changeIndex = { index in
      let trees = index.entries.filter { $0.kind == 1 }
      guard let wrongLocation = trees.max(by: { $0.length < $1.length }) else { return }
      for number in index.entries.indices
      where index.entries[number].digest == Blake2b.hash(inner) {
        (index.entries[number].offset, index.entries[number].length) = (
          wrongLocation.offset, wrongLocation.length
        )
      }
    }
    return forged
  }

  // MARK: - Index, contents

  private static func twoFiles(behind filler: Int = 0) -> ForgedRepository {
    forge { forged in
      // Enough bytes to put the file's blob into the second frame.
      if filler > 0 { forged.add([UInt8](repeating: 7, count: filler), kind: 0) }
      forged.add(other, kind: 0)
      return [ForgedEntry.file(bytes("evil"), other)]
    }
  }

  /// Makes a row with a changed index entry of the file's only blob.
  private static func wrongLocation(
    _ name: String, _ refusers: Set<String>, _ words: [String], behind filler: Int = 0,
    _ change: @escaping @Sendable (inout ForgedRepository.Entry) -> Void
  ) -> HostileRow {
    HostileRow(testDescription: "an index with a wrong \(name)", refusers: refusers, words: words) {
      var forged = twoFiles(behind: filler)
      forged.changeIndex = { index in
        for number in index.entries.indices
        where index.entries[number].digest == Blake2b.hash(other) {
          change(&index.entries[number])
        }
      }
      return forged
    }
  }

  private static let wrongLocations = [
    wrongLocation("offset", dataReaders, ["evil"]) { $0.offset += 1 },
    wrongLocation("length", dataReaders.union(["check"]), ["evil"]) { $0.length -= 1 },
    wrongLocation("kind", dataReaders.union(["check"]), ["evil"]) { $0.kind = 1 },
    wrongLocation("pack", dataReaders, ["evil"]) { $0.pack = 1 },
    wrongLocation("but existing frame", dataReaders, ["evil"], behind: 300_000) {
      $0.frame = $0.frame == 0 ? 1 : 0
    },
  ]

  private static func index(
    _ name: String, _ change: @escaping @Sendable (inout ForgedRepository.Index) -> Void
  ) -> HostileRow {
    HostileRow(
      testDescription: "an index with \(name)",
      refusers: ["check", "check --read-data", "stats"],
      warners: Set(commands).subtracting(["snapshots", "check", "check --read-data", "stats"]),
      words: ["index"]
    ) {
      var forged = twoFiles()
      forged.changeIndex = change
      return forged
    }
  }

  private static let indexes = [
    index("a missing pack") { $0.entries[0].pack = 99 },
    index("a missing frame") { $0.entries[0].frame = 1000 },
    index("a blob of 100 MiB") { $0.entries[0].length = 100 << 20 },
    index("a blob twice") { $0.entries.append($0.entries[0]) },
    index("a frame of 4 GiB") { $0.packs[0].frames[0].plain = 0xffff_ffff },
    index("a frame after the end of its pack") { $0.packs[0].frames[0].offset = .max },
  ]

  private static func contents(
    _ name: String, _ change: @escaping @Sendable (inout [ForgedRepository.Entry]) -> Void
  ) -> HostileRow {
    HostileRow(
      testDescription: "contents with a wrong \(name)", refusers: ["check --read-data"],
      words: ["packs/"]
    ) {
      var forged = twoFiles()
      forged.changeContents = { entries in if entries.first?.kind == 0 { change(&entries) } }
      return forged
    }
  }

  private static let contents = [
    contents("offset") { $0[0].offset += 1 }, contents("kind") { $0[0].kind = 1 },
    contents("undefined kind") { $0[0].kind = 3 }, contents("frame") { $0[0].frame = 9 },
    contents("length") { $0[0].length = 9 << 20 }, contents("pack") { $0[0].pack = 1 },
    contents("order") { $0.swapAt(0, 1) }, contents("overlap") { $0[1].offset -= 1 },
  ]

  // MARK: - Frames, snapshots

  /// Replacements of a frame of 300,000 bytes.
  private static let frames = [
    HostileFrame.claims100GB, .holdsAGigabyte, .wantsAWindowOf2GB, .hasNoSize, .isSkippable,
  ].map { frame in
    HostileRow(
      testDescription: "frame: \(frame)", refusers: dataReaders, words: ["evil"]
    ) {
      var forged = forge { forged in
        let big = [UInt8](repeating: 1, count: 300_000)
        forged.add(big, kind: 0)
        return [ForgedEntry.file(bytes("evil"), big)]
      }
      forged.changeFrame = { number, bytes in
        if number == 0 && frame.isAbout(bytes) { bytes = frame.bytes }
      }
      return forged
    }
  }

  private static let snapshots = [
    // 4 MB of text that would need 100 MB of memory.
    HostileRow(
      testDescription: "a snapshot of two million values", refusers: ["snapshots"],
      words: ["more than 2097152 values"], commands: ["snapshots"]
    ) {
      var forged = twoFiles()
      forged.addSnapshot(forged.addTree([])) {
        let values = String(repeating: "1,", count: 1 << 21) + "1"
        return $0.replacing("\"host\":\"host\"", with: "\"host\":\"host\",\"odd\":[\(values)]")
      }
      return forged
    },
    HostileRow(
      testDescription: "a snapshot of version 2", refusers: Set(commands), words: ["version 2"]
    ) {
      var forged = twoFiles()
      let root = forged.addTree([ForgedEntry.file(bytes("newer"), good)])
      forged.addSnapshot(root) {
        $0.replacing("\"version\":1", with: "\"version\":2")
      }
      return forged
    },
  ]
}
