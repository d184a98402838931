import ArchiveStore
import Foundation
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The way back after an update.
@Suite(.spreadScans) struct RollbackTests {
  private static let package = MemoryPackage(
    extensions: [("\(UpdateFixture.app).share", "20")], files: ["new": "new"])

  /// An update and a rollback with nothing between is the identity on every path: bytes, modes and
  /// times; links to the app's own containers lead there, whose directories have other names. Also where
  /// the update dropped what no snapshot holds: strictly, by a policy, or with an extension.
  @Test func nothingBetweenIsTheIdentity() throws {
    var random = Seeded.fresh("RollbackTests")
    for _ in 0..<2 * UpdatePropertyTests.rounds {
      let rig = try UpdateFixture()
      try rig.fill(&random)
      let share = ByteString("phone/Containers/Data/PluginKitPlugin").appending(
        UpdateFixture.plugIn)
      try rig.put("picture", share.appending("Library/Caches/a"))
      try rig.put("scratch", share.appending("tmp/deep/b"))
      try rig.put("upload", rig.data.appending(UpdateFixture.old).appending("tmp/deep/c"))
      let temporary = try Directory.open(path: rig.dataDirectory().appending("tmp/deep"))
      try temporary.createLink("own", to: rig.dataDirectory().appending("Documents"))
      let before = try rig.contents()
      let overlays = Bool.random(using: &random) ? [UpdatePropertyTests.greedy] : []
      let package = Bool.random(using: &random) ? Self.package : MemoryPackage()
      let isStrict = Bool.random(using: &random)
      let updated = try rig.run(.update, package, overlays) { $0.isStrict = isStrict }
      #expect(updated.isComplete)
      let plan = try rig.rollbackPlan(of: rig.scan(overlays), at: Host.now())
      #expect(plan.newer.isEmpty)
      if isStrict { #expect(plan.containers.contains { !$0.returns.isEmpty }) }
      let report = try rig.carryOut(plan, from: rig.rig.repository.beginReading())
      #expect(report.isComplete, "\(report.failed)")
      let after = try rig.contents()
      let differences = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
      #expect(differences.isEmpty, "\(differences.sorted())")
      let app = try #require(
        try rig.device().apps.first { $0.identifier == UpdateFixture.identifier })
      #expect(app.version == "1.0")
      #expect(try #require(report.saved).snapshot.reason == .preRollback)
      #expect(!rig.hasStaging)
    }
  }

  /// What was made since the update is named, and nothing is done until it is said what is wanted.
  @Test func whatIsNewerIsAskedFor() throws {
    let rig = try UpdateFixture()
    try rig.run(.update, Self.package)
    try rig.write("rewritten", "Documents/thesis.txt")
    try rig.write("new chapter", "Documents/chapter")
    try rig.write("cached", "Library/Caches/c")
    let now = try rig.contents()
    let plan = try rig.rollbackPlan()
    #expect(plan.refusals.map(\.code) == [.newerData])
    let names = ["chapter", "thesis.txt"].map {
      ByteString("apps/org.example.one/data/Documents/\($0)")
    }
    #expect(plan.newer == names)
    let error = #expect(throws: LifecycleError.self) { try rig.rollback() }
    #expect(error?.description.contains("Documents/chapter") ?? false)
    #expect(error?.hint?.contains("--data merge") ?? false)
    #expect(try rig.contents() == now)
  }

  @Test(arguments: DataChoice.allCases) func whatIsChosenHolds(_ choice: DataChoice) throws {
    let rig = try UpdateFixture()
    try rig.run(.update, Self.package)
    try rig.write("rewritten", "Documents/thesis.txt")
    try rig.write("new chapter", "Documents/chapter")
    try rig.write("cached", "Library/Caches/c")
    let home = try rig.dataDirectory()
    try Directory.open(path: home.appending("Documents/deep/er")).remove("note")
    let report = try rig.rollback { $0.data = choice }
    #expect(report.isComplete, "\(report.failed)")
    let found = try rig.contents()
    func text(_ name: String) -> String? {
      found[ByteString("apps/org.example.one/data/\(name)")]?.text
    }
    #expect(text("Library/Caches/c") == "cached", "what is never backed up stays")
    #expect(
      found["apps/org.example.one/bundle/Example.app/Example"]?.text == "old program")
    #expect(found["apps/org.example.one/bundle/Example.app/new"] == nil)
    switch choice {
    case .before:
      #expect(text("Documents/thesis.txt") == "a thesis" && text("Documents/chapter") == nil)
      #expect(text("Documents/deep/er/note") == "note")
      #expect(try rig.trash().values.contains("new chapter"))
      #expect(try rig.trash().values.contains("rewritten"))
    case .now:
      #expect(text("Documents/thesis.txt") == "rewritten")
      #expect(text("Documents/chapter") == "new chapter" && text("Documents/deep/er/note") == nil)
    case .merge:
      #expect(text("Documents/thesis.txt") == "rewritten")
      #expect(text("Documents/chapter") == "new chapter")
      #expect(text("Documents/deep/er/note") == "note")
    }
  }

  /// A file of the same size, time and mode whose bytes are others is no unchanged file: what the app or
  /// anybody else did to the times, the bytes of then come back.
  @Test func onlyBytesProveAFileUnchanged() throws {
    let rig = try UpdateFixture()
    try rig.write("file of A", "Documents/A/file")
    try rig.write("file of B", "Documents/B/file")
    let documents = try Directory.open(path: rig.dataDirectory().appending("Documents"))
    let time = Timestamp(seconds: 1_700_000_000)
    for name: ByteString in ["A", "B"] {
      try documents.directory(name).setModified(time, of: "file")
    }
    let before = try rig.contents()
    try rig.run(.update, Self.package)
    let moved = try Directory.open(path: rig.dataDirectory().appending("Documents"))
    let thesis = try moved.status("thesis.txt")
    try moved.remove("thesis.txt")
    try rig.write("A thesis", "Documents/thesis.txt")
    try moved.setModified(thesis.modified, of: "thesis.txt")
    try moved.setPermissions(thesis.permissions, of: "thesis.txt")
    // Here the files are the same ones, and only the directories have changed names.
    try moved.exchange("A", with: "B", in: moved)
    let paths = ["A/file", "B/file", "thesis.txt"].map {
      ByteString("apps/org.example.one/data/Documents/\($0)")
    }
    #expect(try rig.rollbackPlan().newer == paths)
    #expect(try rig.rollback { $0.data = .before }.isComplete)
    #expect(try rig.contents() == before)
  }

  /// What stood still since before the snapshot, with all directories above it, is not read for that.
  @Test func whatStoodStillIsNotRead() throws {
    // Of what lies in memory no time proves that it stood still.
    let rig = try UpdateFixture(inMemory: false)
    try rig.run(.update, Self.package)
    // Snapshots of this rig are an hour ahead of the files, and plans for later trust them.
    func opened(after seconds: Int64) throws -> Int {
      let time = Timestamp(seconds: Host.now().seconds + seconds)
      let scan = try rig.scan()
      let counter = Faults.Plan(failing: [.open], at: Int.max, number: 5)
      let plan = try Faults.inject(counter) { try rig.rollbackPlan(of: scan, at: time) }
      #expect(plan.refusals.isEmpty && plan.newer.isEmpty)
      return counter.count
    }
    let files = try rig.contents().values.count { $0.kind == .file }
    #expect(files > 6)
    let (still, unproven) = (try opened(after: 7200), try opened(after: 0))
    // The bundle's three files are exchanged anyway, and what no backup holds is not compared.
    #expect(unproven >= still + 4, "\(unproven), \(still), \(files)")
  }

  /// What a strict update dropped comes back where nothing new stands, and not where the data is to stay;
  /// what was made since stays.
  @Test(arguments: DataChoice.allCases) func whatWasDroppedComesBack(_ choice: DataChoice) throws {
    let rig = try UpdateFixture()
    let other: ByteString = "tmp/deep/other"
    try rig.write("other", other)
    try rig.run(.update, Self.package) { $0.isStrict = true }
    try rig.write("new upload", "tmp/upload")
    let plan = try rig.rollbackPlan { $0.data = choice }
    let returns = plan.containers.flatMap(\.returns)
    let report = try rig.carryOut(plan, from: rig.rig.repository.beginReading())
    #expect(report.isComplete, "\(report.failed)")
    let found = try rig.contents()
    func text(_ path: ByteString) -> String? {
      found[ByteString("apps/org.example.one/data").appending(path)]?.text
    }
    #expect(text("tmp/upload") == "new upload")
    #expect(text(other) == (choice == .now ? nil : "other"))
    #expect(returns.map(\.inner) == (choice == .now ? [] : ["tmp/deep"]))
    #expect(returns.allSatisfy { $0.dataClass == .temporary && $0.totals.bytes == 5 })
    #expect(text("StoreKit/receipt") == (choice == .now ? nil : "unknown"))
  }

  @Test func withoutAnUpdateThereIsNoWayBack() throws {
    let rig = try UpdateFixture()
    _ = try rig.backup()
    #expect(try rig.rollbackPlan().refusals.map(\.code) == [.noSnapshot])
  }

  /// Every n-th call fails: the app and its data are of one state then, or of the other.
  @Test(arguments: [
    FaultKind(number: 5, staysBroken: true), FaultKind(number: 28, staysBroken: true),
  ]) func eachCallFails(_ kind: FaultKind) throws {
    let rig = try UpdateFixture()
    let old = try rig.contents()
    try rig.run(.update, Self.package)
    try rig.write("rewritten", "Documents/thesis.txt")
    try rig.write("new chapter", "Documents/chapter")
    let new = try rig.contents()
    try rig.rig.copy("phone", to: "newer")
    var random = Seeded.fresh("RollbackTests")
    let stride = Sampling.stride(17)
    var (call, states) = (0, Set<Bool>())
    while call < 5000 {
      call += call == 0 ? Int.random(in: 1...stride, using: &random) : stride
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("newer", to: "phone")
      let plan = try rig.rollbackPlan {
        ($0.data, $0.savesFirst) = (.before, false)
      }
      let faults = Faults.Plan(
        at: call, number: try #require(kind.number), staysBroken: kind.staysBroken)
      var error: (any Error)?
      let reader = try rig.rig.repository.beginReading()
      Faults.inject(faults) {
        do { _ = try rig.carryOut(plan, from: reader) } catch let failure { error = failure }
      }
      let what = "\(kind), call \(call): \(error.map { "\($0)" } ?? "reported")"
      _ = try rig.recover(what)
      let found = try rig.contents().mapValues(\.text)
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
  /// What a path is, whatever the UUIDs of the containers.
  struct Content: Equatable {
    let kind: FileKind
    let permissions: UInt16
    /// Of what is no directory.
    let modified: Timestamp?
    let text: String?
  }

  /// What each logical path holds, but for the platform's own metadata.
  func contents() throws -> [ByteString: Content] {
    var found: [ByteString: Content] = [:]
    let containers = try device().containers
    for container in containers {
      let inner = ByteString(container.absolutePath.bytes.dropFirst(rig.directory.path.count + 1))
      for (path, record) in try rig.records(inner)
      where path != Self.metadata && !OwnNames.has(path.components.first ?? "") {
        var text = record.target?.description
        for other in containers {
          text = text?.replacingOccurrences(
            of: other.absolutePath.lastComponent?.description ?? "", with: "UUID")
        }
        if record.kind == .file { text = try rig.text(inner.appending(path)) }
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
      Self.identifier, on: try device(), among: try rig.repository.snapshots().snapshots)
    return try AppChangePlan.rollback(
      scan, request, to: before, from: rig.repository.beginReading())
  }

  @discardableResult
  func carryOut(
    _ plan: AppChangePlan, from reader: RepositoryReader
  ) throws -> AppChangeReport {
    try AppChangeOperation(plan, saving: request, to: rig.repository, from: reader).run()
  }

  @discardableResult
  func rollback(
    _ adapt: (inout AppChangeRequest) -> Void = { _ in }
  ) throws -> AppChangeReport {
    try carryOut(rollbackPlan(adapt), from: rig.repository.beginReading())
  }
}
