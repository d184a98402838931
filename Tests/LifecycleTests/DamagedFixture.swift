import ArchiveStore
import Lifecycle
import SystemIO
import TestSupport

/// A backed-up tree, and where the objects of the repository lie.
struct DamagedFixture {
  enum Damage: CaseIterable {
    case changed, cutToHalf, cutToHundredBytes, removed

    func callAsFunction(_ bytes: [UInt8]) -> [UInt8]? {
      var bytes = bytes
      switch self {
      case .changed:
        let middle = bytes.count / 2
        for place in middle..<min(middle + 8, bytes.count) { bytes[place] ^= 0xff }
      case .cutToHalf: bytes.removeLast(bytes.count - bytes.count / 2)
      case .cutToHundredBytes: bytes.removeLast(max(0, bytes.count - 100))
      case .removed: return nil
      }
      return bytes
    }
  }

  let rig: Fixture

  init() throws {
    rig = try Fixture(inMemory: true)
    var random = Seeded(16)
    try rig.directory.write(random.bytes(300_000), at: "tree/large")
    try rig.directory.write("one", at: "tree/one")
    try rig.directory.write("two", at: "tree/folder/two")
    let tree = try Directory.open(path: rig.directory.path("tree"))
    try tree.attributes(of: "folder").set("user.large", to: [UInt8](repeating: 65, count: 600))
    _ = try rig.backup(keeping: "cache")
  }

  func objects() throws -> [ByteString] {
    var objects: [ByteString] = []
    for prefix in try rig.names("repo/packs") {
      let directory = ByteString("repo/packs").appending(prefix)
      objects += try rig.names(directory).map { directory.appending($0) }
    }
    for directory: ByteString in ["repo/index", "repo/snapshots"] {
      objects += try rig.names(directory).map { directory.appending($0) }
    }
    return objects
  }

  func damage(_ object: ByteString, _ damage: Damage) throws {
    let bytes = try rig.directory.read(object)
    try rig.directory.directory.removeTree(object)
    if let bytes = damage(bytes) { try rig.directory.write(bytes, at: object) }
  }

  /// Checks, and records what is damaged.
  func check(_ reading: CheckReading = .everything) throws -> CheckReport {
    let result = try RepositoryCheck(rig.repository, reading: reading, workers: 1).run()
    let report = try result.tell { _ in }
    try result.recordDamage()
    return report
  }

  /// Whether a backup of the unchanged source restores whole.
  func backsUpWhole() throws -> Bool {
    let report = try rig.backup(keeping: "cache")
    _ = try rig.restore(report, to: "back")
    return try rig.records("back") == rig.records("tree")
  }
}
