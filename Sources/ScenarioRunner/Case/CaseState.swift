internal import ArchiveStore
internal import Backup
internal import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
internal import Scenario
internal import SystemIO

/// The state of a case between its steps.
final class CaseState {
  let document: ScenarioDocument
  let version: ScenarioDocument.Version
  let shared: SharedParts
  /// The directory of the case.
  let directory: ByteString
  var copy: CaseDevice
  /// The policy for the version of the case.
  let policy: CompiledPolicy
  /// The plan of faults of the current interruption, under which the operation of a step runs.
  var interruption: Faults.Plan?
  /// The snapshots of the backup steps, by their names.
  var snapshots: [String: StoredSnapshot] = [:]
  /// The snapshot of the last backup step.
  var lastSnapshot: StoredSnapshot?
  /// The number of packages made.
  var packages = 0
  private var moments: [String: ScenarioMoment] = [:]
  private let attributes: Set<ByteString>?
  private lazy var opened = Result { try makeRepository() }

  /// Copies the device of a document into a directory.
  init(
    _ document: ScenarioDocument, _ version: ScenarioDocument.Version, in directory: ByteString,
    sharing shared: SharedParts
  ) throws {
    (self.document, self.version, self.shared) = (document, version, shared)
    self.directory = directory
    let isStopping = shared.options.isStopping
    switch document.device {
    case .sample(let day):
      copy = try CaseDevice(
        of: try shared.sample(day: day), layout: .coreSimulator, in: directory,
        isStopping: isStopping)
    case .root(let path, let layout):
      copy = try CaseDevice(
        of: document.resolved(path), layout: layout, in: directory, isStopping: isStopping)
    }
    let layout = try copy.find().layout
    policy = try shared.policy(layout, version.osVersion)
    attributes =
      document.asksForMarks
      ? document.markAttributes(policy, try shared.policy(layout, nil)) : nil
  }

  var isStopping: @Sendable () -> Bool { shared.options.isStopping }

  /// The cache directory of the case.
  var cache: ByteString { directory.appending("cache") }

  /// Returns the current device, with the group members that the policy lists.
  func device() throws -> Device { try copy.find().stating(groupsOf: policy) }

  /// Returns the identifier of an app.
  func app(_ name: ByteString) throws -> BundleIdentifier { try device().app(name).identifier }

  /// Returns the repository of the case, which is created on first use.
  func repository() throws -> Repository { try opened.get() }

  private func makeRepository() throws -> Repository {
    let storage = try LocalStorage.create(path: directory.appending("repository"))
    return try Repository.create(in: storage, program: shared.options.program)
  }

  /// The options of backups, with a single reader so that an interruption is the same in each run.
  var backupRequest: BackupRequest {
    var request = BackupRequest(
      program: shared.options.program, workers: 1, cache: cache, keepFree: 0,
      isStopping: isStopping)
    request.checksSpace = false
    return request
  }

  /// Runs the operation of a step, with the interruption, if there is one.
  func carryOut<Result>(_ body: () throws -> Result) throws -> Result {
    guard let interruption else { return try body() }
    return try Faults.inject(interruption, body)
  }

  // MARK: - Facts

  /// Returns the facts about the current device.
  func facts() throws -> DeviceFacts {
    try DeviceFacts(copy.find(), policy, attributes: attributes)
  }

  /// Records the current state under a name if an expectation needs it.
  func recordMoment(_ name: String) throws {
    guard document.momentNames.contains(name) else { return }
    let facts = try facts()
    moments[name] = ScenarioMoment(
      try facts.entries().map { entry in
        guard document.needsDigest(entry.path) else { return entry }
        return ScenarioEntry(
          path: entry.path, kind: entry.kind, digest: try facts.digest(of: entry),
          verdicts: entry.verdicts, marks: entry.marks)
      })
  }

  /// Returns the failures of expectations.
  func failures(of expectations: [ScenarioExpectation]) throws -> [ScenarioFailure] {
    let facts = try facts()
    return try expectations.flatMap {
      try $0.failures(in: facts, moments: moments, version: version.osVersion)
    }
  }
}

extension ScenarioDocument {
  /// Returns a path of the document: a relative one begins at the directory of its file.
  func resolved(_ path: ByteString) -> ByteString {
    path.isAbsolute ? path : ByteString(location.file).dirname.appending(path)
  }

  /// Whether an expectation refers to marks.
  fileprivate var asksForMarks: Bool {
    expectations.contains { expectation in
      expectation.assertions.contains { located in
        if case .mark = located.assertion { true } else { false }
      }
    }
  }

  /// Returns the names of the attributes that are marks: those of policies, and those that the
  /// document names.
  fileprivate func markAttributes(_ policies: CompiledPolicy...) -> Set<ByteString> {
    var names = Set(
      policies.flatMap { $0.markers.compactMap(\.linuxAttribute) }.map { ByteString($0) })
    for step in steps {
      if case .mark(let mark) = step.action, let name = mark.attribute {
        names.insert(name.attributeName)
      }
    }
    for expectation in expectations {
      for located in expectation.assertions {
        if case .mark(.attribute(let name)) = located.assertion { names.insert(name.attributeName) }
      }
    }
    return names
  }
}
