import AppUpdate
import ArchiveStore
import Backup
import Codecs
import DeviceDiscovery
import DeviceScan
import DeviceTransaction
import Foundation
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppPackages

/// A crash during the rollback of an operation on a platform where containers do not move: an
/// update that renames the bundle, or an installation that creates a container and moves data from
/// the home directory into it. Then the home directory is as before, data written in the meantime
/// is kept, and nothing else remains.
@Suite(.spreadScans) struct RollbackMacOSTests {
  /// The path at which a conflicting entry stops the operation: an update in the first case, an
  /// installation in the others.
  enum Conflict: CaseIterable, Sendable {
    case bundle, container, moved
  }

  private static let policy = Result { try Fixture.policy(.macOS) }
  private static let paths: [ByteString] = ["Library/Application Support/One", "Documents/One"]
  private static let inner: [ByteString] = [
    "Library/Application Support/One", "Library/Preferences/One",
  ]
  private static let package = MemoryPackage(
    shape: .contents,
    migration: ContainerMigration(
      moves: zip(paths, inner).map { .init(source: $0, destination: $1) }, links: []),
    files: ["Contents/MacOS/Example": "new program"])

  /// The distance between the tested calls: 1 in complete runs, otherwise 13, beginning at a
  /// different call in each run.
  private static let stride = Sampling.stride(13)

  private struct Home {
    struct Entry: Equatable {
      let kind: FileKind
      let permissions: UInt16
      let content: Digest?
    }

    let fixture: Fixture
    let conflict: Conflict
    let before: [ByteString: Entry]

    init(_ conflict: Conflict) throws {
      self.conflict = conflict
      fixture = try Fixture(inMemory: true)
      let containers: ByteString = "home/Library/Containers"
      for location in ["home/Applications", containers] {
        _ = try Directory.make(path: fixture.directory.path(location))
      }
      if conflict == .bundle {
        let old: ByteString = "home/Applications/Old.app/Contents"
        try fixture.directory.write(
          UpdateFixture.info(UpdateFixture.app, "1.0", "10"), at: old.appending("Info.plist"))
        try fixture.directory.write("old program", at: old.appending("MacOS/Example"))
        let data = containers.appending(ByteString(UpdateFixture.app)).appending("Data")
        try fixture.directory.write("a thesis", at: data.appending("Documents/thesis"))
      }
      for location in RollbackMacOSTests.paths {
        try fixture.directory.write(
          "of \(location)", at: ByteString("home").appending(location).appending("file"))
      }
      try fixture.copy("home", to: "older")
      before = try Self.contents(fixture)
    }

    var root: ByteString { fixture.directory.path("home") }

    private static func contents(_ fixture: Fixture) throws -> [ByteString: Entry] {
      try fixture.records("home").filter { !$0.key.isWithin(OwnNames.directory) }.mapValues {
        Entry(kind: $0.kind, permissions: $0.permissions, content: $0.content)
      }
    }

    func device() throws -> Device { try Device.find(root: root, layout: .macOS) }

    func renew() throws -> AppChangePlan {
      try fixture.directory.directory.removeTree("home")
      try fixture.copy("older", to: "home")
      let device = try device()
      let scan = DeviceScan.run(device, policy: try RollbackMacOSTests.policy.get()) {
        AppChangePlan.isConcerned($0, by: UpdateFixture.identifier, on: device)
      }
      var request = AppChangeRequest(
        conflict == .bundle ? .update : .install, of: UpdateFixture.identifier,
        package: RollbackMacOSTests.package.app)
      (request.isForced, request.savesFirst) = (true, false)
      let plan = AppChangePlan.make(scan, request)
      #expect(plan.refusals.isEmpty)
      return plan
    }

    func update(_ plan: AppChangePlan) throws {
      var source = RollbackMacOSTests.package
      _ = try AppChangeOperation(
        plan, saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository)
      ).run(&source)
    }

    func recover() throws -> RecoveryReport {
      try Recovery(device(), policy: RollbackMacOSTests.policy.get(), isForced: true).run()
    }

    private var bundle: ByteString { root.appending("Applications/Example.app") }
    private var container: ByteString {
      root.appending("Library/Containers").appending(ByteString(UpdateFixture.app))
    }
    private var data: ByteString { container.appending("Data") }

    private func isThere(_ path: ByteString) -> Bool {
      (try? Directory.open(path: path.parent).statusIfPresent(path.lastComponent ?? ""))
        ?? nil != nil
    }

    /// Whether the conflicting entry can be created now, so that the operation is rolled back.
    var canBeObstructed: Bool {
      switch conflict {
      case .bundle: !isThere(bundle)
      case .container: !isThere(container)
      case .moved: isThere(data) && !isThere(data.appending(RollbackMacOSTests.inner[1]))
      }
    }

    func obstruct() throws {
      let text = Array("foreign".utf8)
      switch conflict {
      case .bundle: try Directory.make(path: bundle).create("foreign").write(text)
      case .container: try Directory.make(path: container).create("foreign").write(text)
      case .moved:
        let location = data.appending(RollbackMacOSTests.inner[1])
        try Directory.open(path: location.parent).create(location.lastComponent ?? "")
          .write(text)
      }
    }

    /// Writes, as an app, into a directory that the operation has put in place.
    func write() throws -> Bool {
      let has = conflict == .moved ? data : bundle
      guard conflict != .bundle, let directory = try? Directory.open(path: has) else {
        return false
      }
      try directory.openOrCreate("written").write(Array("since".utf8))
      return true
    }

    /// Checks that everything is as before, after the rollback of the interrupted operation.
    func expectAsBefore(written: Bool, _ what: String) throws {
      #expect(try InterruptedOperation.all(on: root).isEmpty, "\(what)")
      let location: ByteString? =
        switch conflict {
        case .bundle: bundle
        case .container: container
        case .moved: nil
        }
      if let location {
        #expect(try Directory.open(path: location).names() == ["foreign"], "\(what)")
        try Directory.open(path: location.parent).removeTree(location.lastComponent ?? "")
      }
      let contents = try Self.contents(fixture)
      let differences = Set(contents.keys).union(before.keys).filter { contents[$0] != before[$0] }
      #expect(differences.isEmpty, "\(what): \(differences.sorted())")
      let (found, texts) = try trash()
      if written { #expect(texts.contains("since"), "\(what)") }
      if location == nil { #expect(texts.contains("foreign"), "\(what)") }
      for path in found where path != "operation.json" {
        #expect(path.components.first == "taken-back", "\(what): \(path)")
      }
      let journal = (try? fixture.names("home/.sandboxctl/journal")) ?? []
      #expect(!journal.contains { $0.description.hasSuffix(".json") }, "\(what)")
    }

    /// The paths in the operation's directory in the trash, and the texts of its files.
    private func trash() throws -> (paths: [ByteString], texts: [String]) {
      let location: ByteString = "home/.sandboxctl/trash"
      guard (try? fixture.names(location)) != nil else { return ([], []) }
      let files = try fixture.records(location).filter { $0.value.kind == .file }.keys
      let paths = files.map { path in
        ByteString(joining: path.components.dropFirst())
      }
      return (paths, try files.map { try fixture.text(location.appending($0)) })
    }
  }

  /// A single rename fails, each in turn: at once the update is complete or everything is
  /// unchanged.
  @Test(arguments: [Conflict.bundle, .container]) func aFailedRenameLeavesNothingHalfDone(
    _ conflict: Conflict
  ) throws {
    let home = try Home(conflict)
    var (call, refused) = (0, 0)
    while call < 100 {
      call += 1
      let plan = try home.renew()
      let faults = Faults.Plan(failing: [.rename], at: call, number: 13)
      var error: (any Error)?
      Faults.inject(faults) {
        do { try home.update(plan) } catch let failure { error = failure }
      }
      #expect(try InterruptedOperation.all(on: home.root).isEmpty, "call \(call)")
      if error != nil {
        refused += 1
        try home.obstruct()
        try home.expectAsBefore(written: false, "call \(call)")
      } else {
        let data = ByteString("home/Library/Containers/\(UpdateFixture.app)/Data")
        let (file, text): (ByteString, String) =
          conflict == .bundle
          ? ("Documents/thesis", "a thesis")
          : ("Library/Preferences/One/file", "of Documents/One")
        #expect(try home.fixture.text(data.appending(file)) == text, "call \(call)")
      }
      if !faults.hasFired { break }
    }
    #expect(call < 100 && refused > 3, "\(call), \(refused)")
  }

  @Test(arguments: [Conflict.bundle, .container]) func aCrashDuringARollbackLosesNothing(
    _ conflict: Conflict
  ) throws {
    let home = try Home(conflict)
    let whole = Faults.Plan(at: .max, number: 5)
    var plan = try home.renew()
    try home.obstruct()
    _ = Faults.inject(whole) { #expect(throws: OperationError.self) { try home.update(plan) } }
    try home.expectAsBefore(written: false, "not interrupted")
    var random = Seeded.fresh("RollbackMacOSTests")
    var (call, interrupted, written) = (whole.count + 1, 0, 0)
    call += Int.random(in: 0..<Self.stride, using: &random)
    // From the last call backwards, to the point at which the rollback had not begun.
    while call > Self.stride {
      call -= Self.stride
      plan = try home.renew()
      try home.obstruct()
      _ = Faults.inject(Faults.Plan(at: call, number: 5, failsRepeatedly: true)) {
        #expect(throws: OperationError.self) { try home.update(plan) }
      }
      guard let left = try InterruptedOperation.all(on: home.root).first else {
        try home.expectAsBefore(written: false, "call \(call)")
        // After the first interruption it was rolled back; before, it had not begun.
        if interrupted > 0 { break }
        continue
      }
      interrupted += 1
      let isWritten = try home.write()
      written += isWritten ? 1 : 0
      let report = try home.recover()
      #expect(report.done.map(\.isFinished) == [false] && report.blocked.isEmpty, "call \(call)")
      #expect(report.done.allSatisfy { $0.failed.isEmpty }, "call \(call)")
      try home.expectAsBefore(written: isWritten, "call \(call)")
      if left.canBeFinished, !isWritten { break }
    }
    #expect(call > Self.stride && interrupted > 5, "\(interrupted) of \(whole.count)")
    #expect(conflict == .bundle || written > 0, "nothing was in place")
  }

  @Test(arguments: Conflict.allCases) func aCrashDuringTheRecoveryLosesNothing(_ conflict: Conflict)
    throws
  {
    let home = try Home(conflict)
    let last = try lastObstructed(home)
    var random = Seeded.fresh("RollbackMacOSTests")
    var (call, interrupted, written) = (-Int.random(in: 0..<Self.stride, using: &random), 0, 0)
    while call < 2000 {
      call += Self.stride
      let plan = try home.renew()
      _ = Faults.inject(Faults.Plan(failing: [.rename], at: last, number: 5, failsRepeatedly: true))
      {
        #expect(throws: OperationError.self) { try home.update(plan) }
      }
      try home.obstruct()
      var isWritten = try home.write()
      let faults = Faults.Plan(at: call, number: 5, failsRepeatedly: true)
      let isDone = Faults.inject(faults) { (try? home.recover())?.done.isEmpty == false }
      if !isDone {
        interrupted += 1
        isWritten = try home.write() || isWritten
        let report = try home.recover()
        #expect(report.blocked.isEmpty, "call \(call)")
        #expect(
          report.done.allSatisfy { !$0.isFinished && $0.failed.isEmpty },
          "call \(call): \(report.done.map(\.failed))")
      }
      written += isWritten ? 1 : 0
      try home.expectAsBefore(written: isWritten, "call \(call)")
      if !faults.hasFired { break }
    }
    #expect(call < 2000 && interrupted > 5, "\(call), \(interrupted)")
    #expect(conflict == .bundle || written > 0, "nothing was in place")
  }

  /// The last rename at which the update can still be finished, and a conflicting entry can be
  /// created.
  private func lastObstructed(_ home: Home) throws -> Int {
    var (rename, last) = (0, 0)
    while rename < 100 {
      rename += 1
      let plan = try home.renew()
      let faults = Faults.Plan(failing: [.rename], at: rename, number: 5, failsRepeatedly: true)
      Faults.inject(faults) { _ = try? home.update(plan) }
      if !faults.hasFired { break }
      if try InterruptedOperation.all(on: home.root).first?.canBeFinished == true,
        home.canBeObstructed
      {
        last = rename
      }
    }
    #expect(rename < 100 && last > 0)
    return last
  }
}
