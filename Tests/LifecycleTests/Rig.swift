import ArchiveStore
import BuiltinPolicies
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport

/// A folder to back up, a repository, and the program's policies.
struct Rig {
  let folder: TemporaryFolder
  let repository: Repository

  init(inMemory: Bool = false) throws {
    folder = try TemporaryFolder("lifecycle", inMemory: inMemory)
    _ = try Folder.make(path: folder.path("tree"))
    repository = try Repository.create(
      in: try LocalStorage.create(path: folder.path("repo")), program: "test")
  }

  static let library = PolicyLibrary(
    BuiltinPolicies.files.map { PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin) })

  static func policy(
    _ layout: Layout, _ patterns: [CommandLinePattern] = []
  ) throws -> CompiledPolicy {
    try library.compile(PolicyRequest(layout: layout, patterns: patterns))
  }

  /// Looks at the tree as a plain folder.
  func scan(
    _ patterns: [CommandLinePattern] = [], options: ScanOptions = ScanOptions()
  ) throws -> DeviceScan {
    let device = try Device.find(root: folder.path("tree"), layout: .folder)
    return DeviceScan.run(device, policy: try Self.policy(.folder, patterns), options: options)
  }

  /// Backs the tree up, as a scan found it.
  func backup(_ scan: DeviceScan) throws -> BackupReport {
    try BackupOperation(
      BackupPlan.make(scan), to: repository, BackupRequest(program: "test")
    ).run()
  }

  /// Backs the tree up as it is.
  func backup() throws -> BackupReport { try backup(scan()) }

  /// Restores a path of a snapshot as a new folder; gives the report.
  func restore(
    _ report: BackupReport, _ path: ByteString = "folders/tree", to name: ByteString = "back"
  ) throws -> RestoreReport {
    guard let snapshot = report.snapshot else { throw Missing() }
    let reader = try repository.beginReading()
    let plan = try RestorePlan.make(
      snapshot, path: path, to: folder.path(name), from: reader)
    return try RestoreOperation(plan, from: reader).run()
  }

  struct Missing: Error {}

  /// The text of a file below the rig's folder.
  func text(_ path: ByteString) throws -> String {
    String(decoding: try folder.read(path), as: UTF8.self)
  }

  /// What is below a path of the rig's folder, sorted.
  func names(_ path: ByteString) throws -> [ByteString] {
    try Folder.open(path: folder.path(path)).names()
  }
}

extension DeviceScan {
  /// What becomes of each entry, by its path in the only container.
  var fates: [ByteString: ScannedEntry.Fate] {
    guard let scan = containers.first else { return [:] }
    var fates: [ByteString: ScannedEntry.Fate] = [:]
    for index in scan.entries.indices { fates[scan.path(index)] = scan.entries[index].fate }
    return fates
  }
}
