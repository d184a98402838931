public import ArchiveStore
internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Carries out a `BackupPlan`: stores what the plan keeps, then the snapshot.
///
/// One thread reads each file; content that the repository has already is not stored again. When
/// nothing can be written any more the lease is given back and no snapshot appears; what was stored
/// in whole packs stays, unused.
public struct BackupOperation {
  let plan: BackupPlan
  let repository: Repository
  let request: BackupRequest

  /// Prepares an operation.
  public init(_ plan: BackupPlan, to repository: Repository, _ request: BackupRequest) {
    self.plan = plan
    self.repository = repository
    self.request = request
  }

  /// Stores everything and writes the snapshot.
  public func run() throws -> BackupReport {
    let start = Host.monotonicSeconds()
    let session = try repository.beginWriting()
    do {
      var report = BackupReport()
      let tree = try storeContainers(session, &report)
      report.seconds = Host.monotonicSeconds() - start
      report.snapshot = try session.finish(makeSnapshot(tree, report))
      report.statistics = session.statistics
      report.seconds = Host.monotonicSeconds() - start
      return report
    } catch {
      session.abandon()
      throw error
    }
  }

  private func storeContainers(
    _ session: WritingSession, _ report: inout BackupReport
  ) throws -> TreeReference {
    var tree = LogicalTree()
    var links = HardLinks(plan.scans)
    report.unreadable += plan.unreadableFolders
    for scan in plan.scans {
      report.unreadable += scan.unreadable.map {
        PathRemark(path: scan.container.logicalPrefix.appending($0.path), remark: $0.remark)
      }
      report.warnings += scan.mounts.map {
        PathRemark(
          path: scan.container.logicalPrefix.appending($0),
          remark: "another file system is mounted there, which is not entered")
      }
      guard !scan.entries.isEmpty, scan.entries[0].fate != .leftOut else { continue }
      do {
        var writer = try ContainerWriter(scan, session, links)
        tree.place(try writer.store(), at: scan.container.logicalPrefix)
        report.add(writer.report)
        links = writer.links
      } catch let error as SystemError {
        report.missed(scan.container.logicalPrefix, error)
      }
    }
    return try tree.store(session)
  }
}

/// What a backup is told besides its plan.
public struct BackupRequest: Sendable {
  public var reason: Reason
  public var tags: [String]
  /// The program and its version, as the snapshot names it.
  public var program: String

  /// Makes a request.
  public init(reason: Reason = .manual, tags: [String] = [], program: String) {
    self.reason = reason
    self.tags = tags
    self.program = program
  }
}
