import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import RemoteStorage

/// A complete repository on a server.
@Suite(.enabled(if: SFTPFixture.isInstalled)) struct SFTPRepositoryTests {
  private let fixture: SFTPFixture

  init() throws { fixture = try SFTPFixture() }

  private static func files(_ numbers: Range<Int>) -> [(name: String, bytes: [UInt8])] {
    numbers.map { ("file-\($0)", Seeded.some(UInt64($0), count: 50_000)) }
  }

  private func backUp(
    _ files: [(name: String, bytes: [UInt8])], _ repository: Repository, sequence: UInt64
  ) throws -> StoredSnapshot {
    let session = try repository.beginWriting()
    let writer = try session.makeWriter()
    var entries: [TreeEntry] = []
    for file in files {
      let content = try writer.storeFile(
        logicalPath: ByteString("folders/test/" + file.name), bytes: file.bytes.span)
      entries.append(TreeEntry(name: ByteString(file.name), node: .file(content)))
    }
    try writer.flush()
    let tree = try session.storeTree(entries)
    return try session.finish(
      Snapshot(
        repository: repository.id, source: Blake2b.hash(Array("source".utf8)), sequence: sequence,
        time: Timestamp(seconds: 1_793_529_000 + Int64(sequence)), host: "host", user: "user",
        device: DeviceRecord(
          identity: "device", platform: "linux", layout: "folder", root: "/home/user"),
        policy: PolicyRecord(name: "everything", digest: Blake2b.hash([])), tree: tree,
        program: "sandboxctl test"))
  }

  private func requireContent(
    _ files: [(name: String, bytes: [UInt8])], of snapshot: StoredSnapshot, in storage: any Storage
  ) throws {
    let reader = try Repository.open(storage).beginReading()
    for file in files {
      let entry = try reader.entry(at: ByteString(file.name), in: snapshot.snapshot.tree)
      guard case .file(let content)? = entry?.node else {
        Issue.record("no \(file.name)")
        continue
      }
      var bytes: [UInt8] = []
      try reader.readContent(content) { _, piece in
        for index in 0..<piece.count { bytes.append(piece[index]) }
      }
      #expect(bytes == file.bytes, "\(file.name)")
    }
  }

  private func run(_ storage: SFTPStorage, _ disturb: () -> Void = {}) throws {
    let repository = try Repository.create(in: storage, program: "test")
    let first = Self.files(0..<20)
    let second = Self.files(15..<30)
    let old = try backUp(first, repository, sequence: 1)
    disturb()
    let new = try backUp(second, repository, sequence: 2)
    try requireContent(first, of: old, in: storage)
    disturb()
    try requireContent(second, of: new, in: storage)
    try storage.remove(RepositoryLayout.tested.snapshot(old.id))
    disturb()
    let report = try RepositoryPrune(repository, PruneRequest(), workers: 2).run()
    #expect(report.removedPacks > 0)
    try requireContent(second, of: new, in: storage)
    var findings: [RepositoryCheck.Finding] = []
    _ = try RepositoryCheck(repository, reading: .everything, workers: 2).run()
      .forEachFinding { findings.append($0) }
    #expect(findings.isEmpty)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }

  @Test func backupsAreReadBackAndPruned() throws {
    let storage = try fixture.create()
    try run(storage)
    // A local directory and the server give access to the same repository.
    let local = try LocalStorage(path: fixture.directory.path("store"))
    #expect(try Repository.open(local).snapshots().snapshots.count == 1)
  }

  @Test func connectionsMayEndDuringOperations() throws {
    let server = FaultyServer()
    let storage = try fixture.create(through: server.connector)
    var number = 0
    try run(storage) {
      number += 1
      server.lose(at: 3 + 4 * number, number % 2 == 0 ? .answer : .request)
    }
    #expect(storage.session.connectionCount > 2)
  }

  /// The connection is lost at each request of a backup and a prune, before or after the request
  /// was carried out: both operations succeed, and make one snapshot. `make test` tests a sample.
  @Test(arguments: FaultyServer.Loss.allCases)
  func wholeOperationsSurviveALostConnection(_ loss: FaultyServer.Loss) throws {
    let (first, second) = (Self.files(0..<8), Self.files(6..<12))
    let original = try fixture.create("original")
    let made = try Repository.create(in: original, program: "test")
    let old = try backUp(first, made, sequence: 1)
    let gone = try backUp(Self.files(40..<44), made, sequence: 2)
    try original.remove(RepositoryLayout.tested.snapshot(gone.id))
    for number in Sampling.steps(1499, whole: 29, "lost connections, \(loss)") {
      let name = "store-\(number)"
      let copied = try Program.run("cp", ["-a", "original", name], in: fixture.directory.url)
      #expect(copied.code == 0, "\(copied.errors)")
      let server = FaultyServer()
      let storage = try fixture.open(ByteString(name), through: server.connector)
      server.lose(at: number, loss)
      let repository = try Repository.open(storage)
      let new = try backUp(second, repository, sequence: 3)
      _ = try RepositoryPrune(repository, PruneRequest(), workers: 2).run()
      let isLost = server.count >= number
      let local = try LocalStorage(path: fixture.directory.path(ByteString(name)))
      #expect(try Repository.open(local).snapshots().snapshots.map(\.id).count == 2, "\(number)")
      try requireContent(first, of: old, in: local)
      try requireContent(second, of: new, in: local)
      _ = try RepositoryCheck(Repository.open(local), reading: .everything, workers: 1).run()
        .forEachFinding { Issue.record("\(loss) \(number): \($0)") }
      #expect(try local.list(RepositoryLayout.leases).isEmpty, "\(number)")
      try fixture.directory.directory.removeTree(ByteString(name))
      guard isLost else {
        #expect(number > 1499)
        return
      }
    }
  }

  @Test func serverWithoutExtensionsIsUsed() throws {
    let server = FaultyServer(lacking: SFTPExtension.allCases)
    let storage = try fixture.create(through: server.connector)
    try run(storage)
    #expect(storage.warnings.count == 2)
  }
}

extension RepositoryLayout {
  fileprivate static let tested = RepositoryLayout(isEncrypted: false)
}
