import ArchiveStore
import Backup
import Foundation
import Restore
import SystemIO
import TestSupport
import Testing

/// A fixture that makes calls fail, with a small tree of entries of all kinds.
struct FaultFixture {
  let base: Fixture
  /// The repository's storage, which does not count the listings of further pack directories,
  /// because all of them are alike.
  let storage: WatchedStorage
  let repository: Repository

  init() throws {
    base = try Fixture(inMemory: true)
    storage = WatchedStorage(
      base.repository.storage, passing: WatchedStorage.isFurtherPackDirectory)
    repository = try Repository.open(storage)
    try base.directory.write("one", at: "tree/one")
    try base.directory.write([UInt8](repeating: 3, count: 300_000), at: "tree/folder/two")
    try base.directory.write("deep", at: "tree/folder/deeper/three")
    let tree = try Directory.open(path: base.directory.path("tree"))
    let directory = try tree.directory("folder")
    try tree.createLink("link", to: "one")
    try tree.createHardLink("twin", to: "two", in: directory)
    try tree.createSpecial("fifo", kind: .fifo, permissions: 0o600)
    let large = [UInt8](repeating: 65, count: 900)
    try tree.attributes(of: "folder").set("user.large", to: large)
    try tree.attributes(of: "one").set("user.small", to: [1, 2])
    let sparse = try tree.create("sparse")
    try sparse.write([7])
    try sparse.truncate(to: 1 << 20)
  }

  /// Changes the tree: changes a file, adds one, removes one, and replaces one with a directory.
  func change(_ text: String = "changed") throws {
    try base.directory.write(text, at: "tree/one")
    try base.directory.write("new", at: "tree/new/four")
    let tree = try Directory.open(path: base.directory.path("tree"))
    try tree.remove("sparse")
    try tree.makeDirectory("sparse").create("inside").write([8])
    try tree.setPermissions(0o750, of: "folder")
  }

  /// The entries of the tree.
  var records: [ByteString: TreeRecord] { get throws { try base.records("tree") } }

  /// Backs the tree up with the state of earlier runs.
  func backup() throws -> BackupReport { try base.backup(to: repository, keeping: "cache") }

  /// Restores a snapshot to a new directory, which is deleted again. Returns the restored entries.
  func restored(_ snapshot: StoredSnapshot) throws -> [ByteString: TreeRecord] {
    let reader = try base.repository.beginReading()
    let plan = try RestorePlan.make(
      snapshot, path: "folders/tree", to: base.directory.path("checked"), from: reader)
    let report = try RestoreOperation(plan, from: reader).run()
    #expect(report.isComplete, "\(report.damaged) \(report.failed)")
    let found = try base.records("checked")
    try base.directory.directory.removeTree("checked")
    return found
  }

  /// Checks that nothing is damaged or missing in the repository.
  func expectSound(_ what: String) throws {
    let check = RepositoryCheck(base.repository, reading: .everything, workers: 2)
    let report = try check.run().forEachFinding { finding in
      if case .remark = finding { return }
      Issue.record("\(what): \(finding)")
    }
    #expect(report.damaged == 0 && report.costs == 0, "\(what)")
  }
}

/// A way in which calls fail.
struct FaultKind: CustomStringConvertible, Sendable {
  /// The error number, or nil for operations of the storage, which have none.
  let number: Int32?
  let failsRepeatedly: Bool

  static let all = [
    FaultKind(number: 5, failsRepeatedly: false), FaultKind(number: 28, failsRepeatedly: true),
    FaultKind(number: 13, failsRepeatedly: false), FaultKind(number: nil, failsRepeatedly: false),
    FaultKind(number: nil, failsRepeatedly: true),
  ]

  /// One fault of each kind.
  static let some = [
    FaultKind(number: 5, failsRepeatedly: false), FaultKind(number: 28, failsRepeatedly: true),
    FaultKind(number: nil, failsRepeatedly: false),
  ]

  /// The minimum number of calls whose failure cannot be handled: few for the storage.
  var fewest: Int { number == nil ? 5 : 20 }

  /// The distance between failing calls in a sample: smaller for the storage, which has few calls.
  var sample: Int { Sampling.wider(number == nil ? 3 : 16) }

  var description: String {
    "\(number.map { "error \($0)" } ?? "storage")\(failsRepeatedly ? " from then on" : "")"
  }

  /// Runs `body` with the call `call` failing. Returns whether there was such a call.
  func inject(
    at call: Int, _ storage: WatchedStorage, _ body: () throws -> Void
  ) throws -> Bool {
    guard let number else {
      storage.fail(at: call, failsRepeatedly: failsRepeatedly)
      defer { storage.fail(at: nil) }
      try body()
      return storage.hasFailed
    }
    let plan = Faults.Plan(at: call, number: number, failsRepeatedly: failsRepeatedly)
    try Faults.inject(plan, body)
    return plan.hasFired
  }
}

/// Whether an error names the action, the subject and the reason.
func tellsWhatAndWhere(_ error: any Error) -> Bool {
  let words = "\(error)"
  guard let start = words.range(of: "cannot "), let location = words.range(of: "'") else {
    return false
  }
  return start.upperBound < location.lowerBound && words.contains("': ")
}
