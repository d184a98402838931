import ArchiveStore
import Backup
import RemoteStorage
import Restore
import SystemIO
import TestSupport
import Testing

/// A repository in a bucket whose requests fail as a test requires, and a tree to back up.
///
/// The repository has three snapshots of different trees, one of which was removed, so that a prune
/// removes packs and rewrites others. This state is kept, and each step of a sweep begins with it.
struct RemoteFixture {
  let base: Fixture
  let store: FaultStore
  /// The snapshots that a program has reported as complete, with the entries of their tree.
  private(set) var snapshots: [SnapshotID: [ByteString: TreeRecord]] = [:]
  /// The limits for retrying a request: short ones by default.
  var retries: RetryPolicy = {
    var retries = RetryPolicy()
    (retries.base, retries.maximum) = (0.001, 0.01)
    (retries.patience, retries.attempts) = (0.2, 5)
    return retries
  }()

  private static let saved = "beginning"

  init() throws {
    base = try Fixture(inMemory: true)
    store = try FaultStore()
    _ = try Repository.create(in: try storage(), program: "test")
    try base.writeProject()
    try base.directory.write(Self.bytes(1), at: "tree/removed")
    let first = try backUp("cache")
    try base.directory.directory.removeTree("tree/archive")
    try base.directory.write(Self.bytes(2), at: "tree/removed")
    try note(try backUp("cache"))
    try base.tree().remove("removed")
    try base.directory.write(Self.bytes(3), at: "tree/large")
    try note(try backUp("cache"))
    _ = try SnapshotRemoval(open()).run([try #require(first.snapshot).id]) { _ in }
    try store.save(Self.saved)
  }

  /// A fixture with changes to back up, after one backup of them: the store has recorded its
  /// requests.
  static func afterBackup() throws -> RemoteFixture {
    let fixture = try RemoteFixture()
    try fixture.change()
    try fixture.base.copy("cache", to: "cache-of-count")
    try fixture.store.setRules("[]")
    _ = try fixture.backUp("cache-of-count")
    return fixture
  }

  private static func bytes(_ seed: UInt64) -> [UInt8] {
    var random = Seeded(seed)
    return random.bytes(200_000)
  }

  /// Restores the first state.
  func reset() throws {
    try store.setRules("[]")
    try store.load(Self.saved)
  }

  /// Restores the first state, with a copy of the first cache.
  func reset(with cache: ByteString) throws {
    try reset()
    try base.copy("cache", to: "\(cache)")
  }

  /// The latest snapshot of the repository.
  func latest() throws -> StoredSnapshot {
    let all = try open().snapshots().snapshots
    return try #require(all.max { $0.snapshot.sequence < $1.snapshot.sequence })
  }

  /// A new connection to the bucket as programs use it, with short pauses between attempts.
  func storage() throws -> any Storage {
    var options = S3Storage.Options()
    options.http.proxy = ""
    options.http.idleTimeout = 1
    options.retries = retries
    options.environment = { name in
      switch name {
      case "AWS_ACCESS_KEY_ID": "KEY"
      case "AWS_SECRET_ACCESS_KEY": "SECRET"
      default: nil
      }
    }
    options.spool = base.directory.path
    let location = S3Location(bucket: "bucket", prefix: "some/place", endpoint: store.endpoint)
    return ReadAheadStorage(
      TransferStorage(
        try S3Storage(location, options: options), counts: TransferCounts(), connections: 4))
  }

  /// Opens the repository as another program does.
  func open() throws -> Repository { try Repository.open(storage()) }

  /// Backs the tree up.
  ///
  /// - Parameter cache: the directory with the state of earlier runs.
  func backUp(_ cache: ByteString) throws -> BackupReport {
    try base.backup(to: open(), keeping: cache)
  }

  /// Changes the tree after the snapshots that the fixture has.
  func change() throws {
    try base.directory.write("changed", at: "tree/project/3")
    try base.directory.write(Self.bytes(4), at: "tree/large")
  }

  /// Adds the snapshot of a report to those that must not be lost.
  mutating func note(_ report: BackupReport) throws {
    #expect(report.isComplete)
    snapshots[try #require(report.snapshot).id] = try base.records("tree")
  }

  /// Restores a snapshot into a new directory, and removes it again. Returns its entries.
  func restored(_ snapshot: StoredSnapshot) throws -> [ByteString: TreeRecord] {
    try restore(snapshot)
    defer { try? base.directory.directory.removeTree("restored") }
    return try base.records("restored")
  }

  /// Restores a snapshot into the new directory `restored`.
  func restore(_ snapshot: StoredSnapshot) throws {
    let reader = try open().beginReading()
    let plan = try RestorePlan.make(
      snapshot, path: "folders/tree", to: base.directory.path("restored"), from: reader)
    let report = try RestoreOperation(plan, from: reader, threads: 2).run()
    #expect(report.isComplete, "\(report.failed) \(report.damaged)")
  }

  /// Checks that all snapshots are listed and that nothing is damaged. Returns all that are listed.
  @discardableResult
  func expectSound(_ what: String) throws -> [StoredSnapshot] {
    let repository = try open()
    let listing = try repository.snapshots()
    #expect(listing.damaged.isEmpty, "\(what)")
    let listed = Set(listing.snapshots.map(\.id))
    #expect(listed.isSuperset(of: snapshots.keys), "\(what): a snapshot is lost")
    let check = RepositoryCheck(repository, reading: .everything, workers: 1)
    let report = try check.run().forEachFinding { finding in
      if case .remark = finding { return }
      Issue.record("\(what): \(finding)")
    }
    #expect(report.damaged == 0 && report.costs == 0, "\(what)")
    return listing.snapshots
  }

  /// Checks that an error states the action, the subject, the reason and the remedy.
  func expectClear(_ error: any Error, _ what: String) {
    #expect(tellsWhatAndWhere(error), "\(what): \(error)")
    let hint = (error as? any ReportableError)?.hint
    #expect(hint?.isEmpty == false, "\(what): no hint of \(error)")
  }
}

/// A way in which the requests to a store fail.
enum RemoteFault: String, CaseIterable, Sendable {
  /// Temporary errors.
  case failing, busy, limited
  /// A permanent error.
  case denied
  /// A connection that ends before the request is processed, or after it.
  case dropped, answerLost
  /// The request is processed, but the store answers with an error.
  case doneWithError
  /// An answer that is truncated, or is late.
  case truncated, delayed
  /// A store that answers every later request with an error, or does not answer any.
  case alwaysBusy, gone
  /// Credentials that expire and are read again, or are no longer valid afterwards.
  case renewed, expired

  /// Whether a program repeats the request and succeeds.
  var passes: Bool {
    switch self {
    case .denied, .alwaysBusy, .gone, .expired: false
    default: true
    }
  }

  /// The rule of the store that applies to a request, by its number from 1.
  func rule(at number: Int) -> String {
    let isRepeated = self == .alwaysBusy || self == .gone || self == .expired
    return #"[{"skip": \#(number - 1), "times": \#(isRepeated ? 0 : 1), \#(effect)}]"#
  }

  private var effect: String {
    switch self {
    case .failing: Self.error(500, "InternalError")
    case .busy, .alwaysBusy: Self.error(503, "SlowDown")
    case .limited: #""status": 429"#
    case .denied: Self.error(403, "AccessDenied")
    case .dropped, .gone: #""drop": true"#
    case .answerLost: #""done": true, "drop": true"#
    case .doneWithError: #""done": true, "# + Self.error(500, "InternalError")
    case .truncated: #""truncate": 1"#
    case .delayed: #""delay": 0.05"#
    case .renewed, .expired: Self.error(400, "ExpiredToken")
    }
  }

  private static func error(_ status: Int, _ code: String) -> String {
    #""status": \#(status), "body": "<Error><Code>\#(code)</Code></Error>""#
  }
}

/// A fault at one request.
struct RemoteFaultStep: CustomStringConvertible {
  let fault: RemoteFault
  let number: Int

  var description: String { "\(fault) at request \(number)" }

  /// All faults at each of `count` requests, or a sample of them.
  static func some(
    upTo count: Int, _ width: Int, whole: Int, _ label: String
  ) -> [RemoteFaultStep] {
    let all = (1...max(1, count)).flatMap { number in
      RemoteFault.allCases.map { RemoteFaultStep(fault: $0, number: number) }
    }
    return Sampling.some(of: all, width, whole: whole, label)
  }
}
