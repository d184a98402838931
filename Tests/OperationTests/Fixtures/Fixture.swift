import ArchiveStore
import Backup
import BuiltinPolicies
import DeviceDiscovery
import PolicyEngine
import Restore
import SandboxModel
import Synchronization
import SystemIO
import TestSupport

@testable import DeviceScan

/// A directory to back up, a repository, and the built-in policies.
struct Fixture {
  let directory: TemporaryDirectory
  let repository: Repository

  init(inMemory: Bool = false) throws {
    directory = try TemporaryDirectory("lifecycle", inMemory: inMemory)
    _ = try Directory.make(path: directory.path("tree"))
    repository = try Repository.create(
      in: try LocalStorage.create(path: directory.path("repo")), program: "test")
  }

  /// Writes 20 files in `tree/project` and one in `tree/archive`.
  func writeProject() throws {
    for number in 0..<20 {
      try directory.write("file \(number)", at: ByteString("tree/project/\(number)"))
    }
    try directory.write("other", at: "tree/archive/other")
  }

  /// Opens the directory that is backed up.
  func tree() throws -> Directory { try Directory.open(path: directory.path("tree")) }

  static let library = PolicyLibrary(
    BuiltinPolicies.files.map { PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin) })

  /// The policies of layouts, compiled once for all tests.
  private static let policies = Mutex<[Layout: CompiledPolicy]>([:])

  static func policy(
    _ layout: Layout, _ patterns: [CommandLinePattern] = []
  ) throws -> CompiledPolicy {
    guard patterns.isEmpty else {
      return try library.compile(PolicyRequest(layout: layout, patterns: patterns))
    }
    return try policies.withLock { policies in
      if let known = policies[layout] { return known }
      let compiled = try library.compile(PolicyRequest(layout: layout))
      policies[layout] = compiled
      return compiled
    }
  }

  /// Scans the tree as a plain directory.
  func scan(
    _ patterns: [CommandLinePattern] = [], options: ScanOptions = ScanOptions()
  ) throws -> DeviceScan {
    let device = try Device.find(root: directory.path("tree"), layout: .folder)
    return DeviceScan.run(device, policy: try Self.policy(.folder, patterns), options: options)
  }

  /// Backs up the tree as scanned.
  func backup(_ scan: DeviceScan) throws -> BackupReport {
    try BackupOperation(
      BackupPlan.make(scan), to: repository, BackupRequest(program: "test")
    ).run()
  }

  /// Scans and backs up the tree.
  func backup() throws -> BackupReport { try backup(scan()) }

  /// A request with the state of earlier runs, an hour after the last change. The source is treated
  /// as a file system on a disk, because in memory no file counts as stable.
  func request(keeping cache: ByteString) -> BackupRequest {
    var request = BackupRequest(
      program: "test", workers: 2, cache: directory.path(cache),
      now: { Timestamp(seconds: Host.now().seconds + 3600) })
    request.times = .exact
    return request
  }

  /// Backs up the tree with the state of earlier runs, an hour after the last change.
  func backup(
    to other: Repository? = nil, keeping cache: ByteString, _ patterns: [CommandLinePattern] = [],
    _ change: (inout BackupRequest) -> Void = { _ in }
  ) throws -> BackupReport {
    var request = request(keeping: cache)
    change(&request)
    return try BackupOperation(
      BackupPlan.make(scan(patterns)), to: other ?? repository, request
    ).run()
  }

  /// Restores a path of a snapshot as a new directory. Returns the report.
  func restore(
    _ report: BackupReport, _ path: ByteString = "folders/tree", to name: ByteString = "back",
    from other: Repository? = nil
  ) throws -> RestoreReport {
    guard let snapshot = report.snapshot else { throw Missing() }
    let reader = try (other ?? repository).beginReading()
    let plan = try RestorePlan.make(
      snapshot, path: path, to: directory.path(name), from: reader)
    return try RestoreOperation(plan, from: reader).run()
  }

  struct Missing: Error {}

  /// The text of a file below the fixture's directory.
  func text(_ path: ByteString) throws -> String {
    String(decoding: try directory.read(path), as: UTF8.self)
  }

  /// The names in a directory below the fixture's directory, sorted.
  func names(_ path: ByteString) throws -> [ByteString] {
    try Directory.open(path: directory.path(path)).names()
  }
}

extension DeviceScan {
  /// How the scan handles each entry, by its path in the only container.
  var selections: [ByteString: ScannedEntry.Selection] {
    guard let scan = containers.first else { return [:] }
    var selections: [ByteString: ScannedEntry.Selection] = [:]
    for index in scan.entries.indices {
      selections[scan.path(index)] = scan.entries[index].selection
    }
    return selections
  }
}

extension Fixture {
  /// Removes all files in a directory.
  func empty(_ path: ByteString) throws {
    let directory = try Directory.open(path: directory.path(path))
    for name in try directory.names() { try directory.remove(name) }
  }

  /// The paths of the files in a cache whose names have a suffix.
  func stateFiles(_ cache: ByteString, _ suffix: String) throws -> [ByteString] {
    let top = cache.appending("sandboxctl")
    return try names(top).flatMap { repository in
      let directory = top.appending(repository)
      return try names(directory).filter { $0.description.hasSuffix(suffix) }
        .map { directory.appending($0) }
    }
  }
}
