import ArchiveStore
import Backup
import Codecs
import SystemIO
import TestSupport

/// A backed-up tree, and the paths of the repository's objects.
struct DamagedFixture {
  enum Damage: CaseIterable {
    case changed, cutToHalf, cutToHundredBytes, removed

    func callAsFunction(_ bytes: [UInt8]) -> [UInt8]? {
      var bytes = bytes
      switch self {
      case .changed:
        let middle = bytes.count / 2
        for position in middle..<min(middle + 8, bytes.count) { bytes[position] ^= 0xff }
      case .cutToHalf: bytes.removeLast(bytes.count - bytes.count / 2)
      case .cutToHundredBytes: bytes.removeLast(max(0, bytes.count - 100))
      case .removed: return nil
      }
      return bytes
    }
  }

  let base: Fixture

  init() throws {
    base = try Fixture(inMemory: true)
    var random = Seeded(16)
    try base.directory.write(random.bytes(300_000), at: "tree/large")
    try base.directory.write("one", at: "tree/one")
    try base.directory.write("two", at: "tree/folder/two")
    let tree = try Directory.open(path: base.directory.path("tree"))
    try tree.attributes(of: "folder").set("user.large", to: [UInt8](repeating: 65, count: 600))
    let snapshot = try base.backup(keeping: "cache").snapshot
    let pin = ByteString("repo/pins/\(snapshot?.id.hex ?? "")")
    try base.directory.write("", at: pin)
    // As a prune leaves it that is killed after it has removed the packs.
    _ = try condemn([String(repeating: "0b", count: 32)])
    // As a killed program leaves it.
    for name in ["alive", "unfinished"] {
      let lease = String(repeating: "0a", count: 16)
      try base.directory.write(
        name == "alive" ? "" : "x", at: ByteString("repo/leases/\(lease)/\(name)"))
    }
  }

  /// Stores a list of condemned packs, by their ids, and returns its path.
  func condemn(_ packs: [String]) throws -> ByteString {
    let list = packs.map { "\"\($0)\"" }.joined(separator: ",")
    let text = "{\"format\":\"sandboxctl-condemned\",\"version\":1,\"packs\":[\(list)]}"
    let path = ByteString("repo/condemned/\(Blake2b.hash(Array(text.utf8)).hex).json")
    try base.directory.write(text, at: path)
    return path
  }

  /// All files of the repository except the settings, sorted.
  func objects() throws -> [ByteString] {
    try base.records("repo").filter { $0.value.kind == .file && $0.key != "repository.json" }.keys
      .sorted().map { ByteString("repo").appending($0) }
  }

  /// The packs.
  func packs() throws -> [ByteString] {
    try objects().filter { $0.isWithin("repo/packs") }
  }

  func damage(_ object: ByteString, _ damage: Damage) throws {
    let bytes = try base.directory.read(object)
    try base.directory.directory.removeTree(object)
    if let bytes = damage(bytes) { try base.directory.write(bytes, at: object) }
  }

  /// Checks the repository, and records the damage.
  func check(_ reading: RepositoryCheck.Reading = .everything) throws -> RepositoryCheck.Report {
    let result = try RepositoryCheck(base.repository, reading: reading, workers: 1).run()
    let report = try result.forEachFinding { _ in }
    try result.recordDamage()
    return report
  }

  /// Whether a backup of the unchanged source can be restored completely.
  func backsUpWhole() throws -> Bool {
    let report = try base.backup(keeping: "cache")
    _ = try base.restore(report, to: "back")
    return try base.records("back") == base.records("tree")
  }
}
