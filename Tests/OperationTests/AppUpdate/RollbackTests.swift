import ArchiveStore
import Backup
import DeviceScan
import DeviceTransaction
import Foundation
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppUpdate

/// Rollbacks after an update.
@Suite(.spreadScans) struct RollbackTests {
  private static let package = MemoryPackage(
    extensions: [("\(UpdateFixture.app).share", "20")], files: ["new": "new"])

  /// An update and a rollback without changes between them restore every path: bytes, modes, times,
  /// and links to the app's own containers, which point to their new directories. This includes
  /// data that the update discarded and no snapshot has: in a strict update, by a policy, or with
  /// an extension.
  @Test func aRollbackRightAfterAnUpdateRestoresEverything() throws {
    var random = Seeded.fresh("RollbackTests")
    for _ in 0..<2 * UpdatePropertyTests.rounds {
      let fixture = try UpdateFixture()
      try fixture.fill(&random)
      let share = ByteString("phone/Containers/Data/PluginKitPlugin").appending(
        UpdateFixture.plugIn)
      try fixture.put("picture", share.appending("Library/Caches/a"))
      try fixture.put("scratch", share.appending("tmp/deep/b"))
      try fixture.put("upload", fixture.data.appending(UpdateFixture.old).appending("tmp/deep/c"))
      let temporary = try Directory.open(path: fixture.dataDirectory().appending("tmp/deep"))
      try temporary.createLink("own", to: fixture.dataDirectory().appending("Documents"))
      let before = try fixture.contents()
      let overlays = Bool.random(using: &random) ? [UpdatePropertyTests.greedy] : []
      let package = Bool.random(using: &random) ? Self.package : MemoryPackage()
      let isStrict = Bool.random(using: &random)
      let updated = try fixture.run(.update, package, overlays) { $0.isStrict = isStrict }
      #expect(updated.isComplete)
      let plan = try fixture.rollbackPlan(of: fixture.scan(overlays), at: Host.now())
      #expect(plan.newer.isEmpty)
      if isStrict { #expect(plan.containers.contains { !$0.trashRestores.isEmpty }) }
      let report = try fixture.carryOut(plan, from: fixture.base.repository.beginReading())
      #expect(report.isComplete, "\(report.failed)")
      let after = try fixture.contents()
      let differences = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
      #expect(differences.isEmpty, "\(differences.sorted())")
      let app = try #require(
        try fixture.device().apps.first { $0.identifier == UpdateFixture.identifier })
      #expect(app.version == "1.0")
      #expect(try #require(report.saved).snapshot.reason == .preRollback)
      #expect(!fixture.hasStaging)
    }
  }

  /// Entries created after the update are reported, and nothing is changed until the user chooses.
  @Test func newerDataNeedsAChoice() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, Self.package)
    try fixture.write("rewritten", "Documents/thesis.txt")
    try fixture.write("new chapter", "Documents/chapter")
    try fixture.write("cached", "Library/Caches/c")
    let now = try fixture.contents()
    let plan = try fixture.rollbackPlan()
    #expect(plan.refusals.map(\.code) == [.newerData])
    let names = ["chapter", "thesis.txt"].map {
      ByteString("apps/org.example.one/data/Documents/\($0)")
    }
    #expect(plan.newer == names)
    let error = #expect(throws: OperationError.self) { try fixture.rollback() }
    #expect(error?.description.contains("Documents/chapter") ?? false)
    #expect(error?.hint?.contains("--data merge") ?? false)
    #expect(try fixture.contents() == now)
  }

  @Test(arguments: AppChangeRequest.DataChoice.allCases) func theChosenDataIsKept(
    _ choice: AppChangeRequest.DataChoice
  ) throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, Self.package)
    try fixture.write("rewritten", "Documents/thesis.txt")
    try fixture.write("new chapter", "Documents/chapter")
    try fixture.write("cached", "Library/Caches/c")
    let home = try fixture.dataDirectory()
    try Directory.open(path: home.appending("Documents/deep/er")).remove("note")
    let report = try fixture.rollback { $0.data = choice }
    #expect(report.isComplete, "\(report.failed)")
    let found = try fixture.contents()
    func text(_ name: String) -> String? {
      found[ByteString("apps/org.example.one/data/\(name)")]?.text
    }
    #expect(text("Library/Caches/c") == "cached", "files that are never backed up are kept")
    #expect(
      found["apps/org.example.one/bundle/Example.app/Example"]?.text == "old program")
    #expect(found["apps/org.example.one/bundle/Example.app/new"] == nil)
    switch choice {
    case .before:
      #expect(text("Documents/thesis.txt") == "a thesis" && text("Documents/chapter") == nil)
      #expect(text("Documents/deep/er/note") == "note")
      #expect(try fixture.trash().values.contains("new chapter"))
      #expect(try fixture.trash().values.contains("rewritten"))
    case .now:
      #expect(text("Documents/thesis.txt") == "rewritten")
      #expect(text("Documents/chapter") == "new chapter" && text("Documents/deep/er/note") == nil)
    case .merge:
      #expect(text("Documents/thesis.txt") == "rewritten")
      #expect(text("Documents/chapter") == "new chapter")
      #expect(text("Documents/deep/er/note") == "note")
    }
  }

  /// A merge cannot keep a file and restore the directory that it replaced: the refusal names the
  /// other choices.
  @Test func aMergeOfAFileAndADirectoryIsRefused() throws {
    let fixture = try UpdateFixture()
    try fixture.run(.update, Self.package)
    try Directory.open(path: fixture.dataDirectory().appending("Documents")).removeTree("deep")
    try fixture.write("now a file", "Documents/deep")
    let plan = try fixture.rollbackPlan { $0.data = .merge }
    let refusal = try #require(plan.refusals.first)
    #expect(plan.refusals.count == 1 && refusal.code == .location)
    #expect(refusal.reason.contains("apps/org.example.one/data/Documents/deep"), "\(refusal)")
    #expect(refusal.hint?.contains("--data before") == true)
    #expect(try fixture.rollbackPlan { $0.data = .before }.refusals.isEmpty)
  }

  /// A file with the same size, time and mode but other bytes is not unchanged: the old bytes are
  /// restored, even if the app or another program has set the times.
  @Test func aFileIsOnlyUnchangedIfItsBytesAre() throws {
    let fixture = try UpdateFixture()
    try fixture.write("file of A", "Documents/A/file")
    try fixture.write("file of B", "Documents/B/file")
    let documents = try Directory.open(path: fixture.dataDirectory().appending("Documents"))
    let time = Timestamp(seconds: 1_700_000_000)
    for name: ByteString in ["A", "B"] {
      try documents.directory(name).setModified(time, of: "file")
    }
    let before = try fixture.contents()
    try fixture.run(.update, Self.package)
    let moved = try Directory.open(path: fixture.dataDirectory().appending("Documents"))
    let thesis = try moved.status("thesis.txt")
    try moved.remove("thesis.txt")
    try fixture.write("A thesis", "Documents/thesis.txt")
    try moved.setModified(thesis.modified, of: "thesis.txt")
    try moved.setPermissions(thesis.permissions, of: "thesis.txt")
    // Here the files are the same; only the directories have exchanged their names.
    try moved.exchange("A", with: "B", in: moved)
    let paths = ["A/file", "B/file", "thesis.txt"].map {
      ByteString("apps/org.example.one/data/Documents/\($0)")
    }
    #expect(try fixture.rollbackPlan().newer == paths)
    #expect(try fixture.rollback { $0.data = .before }.isComplete)
    #expect(try fixture.contents() == before)
  }

  /// To find out that a file is unchanged, it is not read if it and all its parent directories are
  /// unchanged since before the snapshot.
  @Test func stableFilesAreNotRead() throws {
    // On a file system in memory, times do not prove that a file is unchanged.
    let fixture = try UpdateFixture(inMemory: false)
    try fixture.run(.update, Self.package)
    // Snapshots of this fixture are an hour later than the files, so plans for a later time trust
    // them.
    func opened(after seconds: Int64) throws -> Int {
      let time = Timestamp(seconds: Host.now().seconds + seconds)
      let scan = try fixture.scan()
      let counter = Faults.Plan(failing: [.open], at: Int.max, number: 5)
      let plan = try Faults.inject(counter) { try fixture.rollbackPlan(of: scan, at: time) }
      #expect(plan.refusals.isEmpty && plan.newer.isEmpty)
      return counter.count
    }
    let files = try fixture.contents().values.count { $0.kind == .file }
    #expect(files > 6)
    let (still, unproven) = (try opened(after: 7200), try opened(after: 0))
    // The bundle's three files are exchanged anyway, and files that no backup has are not compared.
    #expect(unproven >= still + 4, "\(unproven), \(still), \(files)")
  }

  /// Data discarded by a strict update is restored unless there is new data at its path or the
  /// current data is kept; entries created since are kept.
  @Test(arguments: AppChangeRequest.DataChoice.allCases) func discardedDataIsRestored(
    _ choice: AppChangeRequest.DataChoice
  ) throws {
    let fixture = try UpdateFixture()
    let other: ByteString = "tmp/deep/other"
    try fixture.write("other", other)
    try fixture.run(.update, Self.package) { $0.isStrict = true }
    try fixture.write("new upload", "tmp/upload")
    let plan = try fixture.rollbackPlan { $0.data = choice }
    let returns = plan.containers.flatMap(\.trashRestores)
    let report = try fixture.carryOut(plan, from: fixture.base.repository.beginReading())
    #expect(report.isComplete, "\(report.failed)")
    let found = try fixture.contents()
    func text(_ path: ByteString) -> String? {
      found[ByteString("apps/org.example.one/data").appending(path)]?.text
    }
    #expect(text("tmp/upload") == "new upload")
    #expect(text(other) == (choice == .now ? nil : "other"))
    #expect(returns.map(\.inner) == (choice == .now ? [] : ["tmp/deep"]))
    #expect(returns.allSatisfy { $0.dataClass == .temporary && $0.totals.bytes == 5 })
    #expect(text("StoreKit/receipt") == (choice == .now ? nil : "unknown"))
  }

  /// A database from the trash is restored with its log, and never next to the files of another
  /// one.
  @Test(arguments: [nil, "tmp/db", "tmp/db-wal", "tmp/db-journal"] as [ByteString?])
  func aDiscardedDatabaseIsRestoredWholeOrNot(new: ByteString?) throws {
    let fixture = try UpdateFixture()
    for name: ByteString in ["tmp/db", "tmp/db-wal"] { try fixture.write("old", name) }
    try fixture.run(.update, Self.package) { $0.isStrict = true }
    if let new { try fixture.write("new", new) }
    let plan = try fixture.rollbackPlan { $0.data = .before }
    let report = try fixture.carryOut(plan, from: fixture.base.repository.beginReading())
    #expect(report.isComplete, "\(report.failed)")
    let found = try fixture.contents()
    for name: ByteString in ["tmp/db", "tmp/db-wal", "tmp/db-journal"] {
      let text = found[ByteString("apps/org.example.one/data").appending(name)]?.text
      let old = new == nil && name != "tmp/db-journal" ? "old" : nil
      #expect(text == (name == new ? "new" : old), "\(name)")
    }
  }

  @Test func withoutAnUpdateARollbackIsRefused() throws {
    let fixture = try UpdateFixture()
    _ = try fixture.backup()
    #expect(try fixture.rollbackPlan().refusals.map(\.code) == [.noSnapshot])
  }

  /// Every n-th call fails: then the app and its data are both in the old or both in the new state.
  @Test(arguments: [
    FaultKind(number: 5, failsRepeatedly: true), FaultKind(number: 28, failsRepeatedly: true),
  ]) func aFailedCallOfARollbackLosesNothing(_ kind: FaultKind) throws {
    let fixture = try UpdateFixture()
    let old = try fixture.contents()
    try fixture.run(.update, Self.package)
    try fixture.write("rewritten", "Documents/thesis.txt")
    try fixture.write("new chapter", "Documents/chapter")
    let new = try fixture.contents()
    try fixture.base.copy("phone", to: "newer")
    var random = Seeded.fresh("RollbackTests")
    let stride = Sampling.stride(17)
    var (call, states) = (0, Set<Bool>())
    while call < 5000 {
      call += call == 0 ? Int.random(in: 1...stride, using: &random) : stride
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("newer", to: "phone")
      let plan = try fixture.rollbackPlan {
        ($0.data, $0.savesFirst) = (.before, false)
      }
      let faults = Faults.Plan(
        at: call, number: try #require(kind.number), failsRepeatedly: kind.failsRepeatedly)
      var error: (any Error)?
      let reader = try fixture.base.repository.beginReading()
      Faults.inject(faults) {
        do { _ = try fixture.carryOut(plan, from: reader) } catch let failure { error = failure }
      }
      let what = "\(kind), call \(call): \(error.map { "\($0)" } ?? "reported")"
      _ = try fixture.recover(what)
      let found = try fixture.contents().mapValues(\.text)
      let isBack = found["apps/org.example.one/bundle/Example.app/Example"] == "old program"
      states.insert(isBack)
      #expect(isBack || error != nil, "\(what)")
      #expect(found == (isBack ? old : new).mapValues(\.text), "\(what)")
      if !faults.hasFired { break }
    }
    #expect(call < 5000 && states == [true, false])
  }
}

extension UpdateFixture {
  /// The content of a path, independent of the UUIDs of the containers.
  struct Content: Equatable {
    let kind: FileKind
    let permissions: UInt16
    /// Nil for directories.
    let modified: Timestamp?
    let text: String?
  }

  /// The content of each logical path, without the platform's own metadata.
  func contents() throws -> [ByteString: Content] {
    var found: [ByteString: Content] = [:]
    let containers = try device().containers
    for container in containers {
      let inner = ByteString(container.absolutePath.bytes.dropFirst(base.directory.path.count + 1))
      for (path, record) in try base.records(inner)
      where path != Self.metadata && !OwnNames.has(path.components.first ?? "") {
        var text = record.target?.description
        for other in containers {
          text = text?.replacingOccurrences(
            of: other.absolutePath.lastComponent?.description ?? "", with: "UUID")
        }
        if record.kind == .file { text = try base.text(inner.appending(path)) }
        found[container.logicalPrefix.appending(path)] = Content(
          kind: record.kind, permissions: record.permissions,
          modified: record.kind == .directory ? nil : record.modified, text: text)
      }
    }
    return found
  }

  func rollbackPlan(
    _ adapt: (inout AppChangeRequest) -> Void = { _ in }
  ) throws -> AppChangePlan {
    try rollbackPlan(of: scan(), at: Host.now(), adapt)
  }

  func rollbackPlan(
    of scan: DeviceScan, at time: Timestamp, _ adapt: (inout AppChangeRequest) -> Void = { _ in }
  ) throws -> AppChangePlan {
    var request = AppChangeRequest(.rollback, of: Self.identifier, time: time)
    request.isForced = true
    adapt(&request)
    let before = AppChangePlan.stateBefore(
      Self.identifier, on: try device(), among: try base.repository.snapshots().snapshots)
    return try AppChangePlan.rollback(
      scan, request, to: before, from: base.repository.beginReading())
  }

  @discardableResult
  func carryOut(
    _ plan: AppChangePlan, from reader: RepositoryReader
  ) throws -> AppChangeReport {
    try AppChangeOperation(
      plan, saving: SafetySnapshotMaker(request, in: base.repository), from: reader
    ).run()
  }

  @discardableResult
  func rollback(
    _ adapt: (inout AppChangeRequest) -> Void = { _ in }
  ) throws -> AppChangeReport {
    try carryOut(rollbackPlan(adapt), from: base.repository.beginReading())
  }
}
