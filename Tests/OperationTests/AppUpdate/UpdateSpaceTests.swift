import AppUpdate
import ArchiveStore
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppPackages

/// An update and an installation on a volume that has no free space, or loses it during the
/// operation: in bytes, and in files.
@Suite(.serialized, .spreadScans, .enabled(if: (try? Mount.isPermitted()) ?? false))
struct UpdateSpaceTests {
  private static let package = MemoryPackage(
    files: ["Example": "new program", "data/table": String(repeating: "t", count: 9000)])

  @Test func anUpdateThatDoesNotFitIsRefused() throws {
    let volume = try UpdateVolume("size=2m,nr_inodes=400")
    defer { withExtendedLifetime(volume) {} }
    let (fixture, before) = (volume.fixture, try volume.fixture.base.records("phone"))
    let large = MemoryPackage(files: ["table": String(repeating: "t", count: 3_000_000)])
    let many = MemoryPackage(
      files: Dictionary(uniqueKeysWithValues: (0..<450).map { ("small/\($0)", "") }))
    for (package, reason) in [
      (large, " are needed, but only"), (many, "files and directories are needed"),
    ] {
      let error = #expect(throws: OperationError.self) { try fixture.run(.update, package) }
      #expect(error?.description.contains("cannot update 'org.example.one' in '") ?? false)
      #expect(error?.description.contains(reason) ?? false, "\(error as Any)")
      #expect(error?.hint?.contains("free space") ?? false)
      #expect(error?.kind == .failed)
    }
    #expect(try fixture.base.records("phone") == before)
    #expect(try fixture.base.repository.snapshots().snapshots.isEmpty, "no snapshot was stored")
    #expect(try fixture.run(.update, Self.package).isComplete, "an update that fits succeeds")
  }

  /// Each file takes whole blocks: many small files need more space than their bytes.
  @Test func smallFilesTakeWholeBlocks() throws {
    let volume = try UpdateVolume("size=2m")
    defer { withExtendedLifetime(volume) {} }
    let small = MemoryPackage(
      files: Dictionary(uniqueKeysWithValues: (0..<600).map { ("small/\($0)", "text") }))
    #expect(small.app.size.bytes < 100_000)
    let error = #expect(throws: OperationError.self) { try volume.fixture.run(.update, small) }
    #expect(error?.description.contains(" are needed, but only") ?? false)
    #expect(!volume.fixture.hasStaging)
  }

  /// The volume is filled, except for a little space, while the package is read, so any later call
  /// may fail. After the recovery, with free space again, the device has its old or its new state.
  @Test(arguments: UpdateVolume.Room.allCases, [true, false])
  func anUpdateOnAFilledVolumeIsCompleteOrUndone(_ what: UpdateVolume.Room, isUpdate: Bool) throws {
    let volume = try UpdateVolume("size=1m,nr_inodes=200", isInstalled: isUpdate)
    defer { withExtendedLifetime(volume) {} }
    let fixture = volume.fixture
    let before = isUpdate ? try State(fixture) : nil
    var outcomes: Set<Bool> = []
    for room in what == .bytes ? Array(0..<16) : Array(stride(from: 0, to: 64, by: 4)) {
      try volume.empty()
      try volume.reset()
      let plan = try fixture.plan(isUpdate ? .update : .install, Self.package) {
        ($0.isStrict, $0.savesFirst) = (isUpdate, false)
      }
      var source = InterruptedSource(Self.package) { try volume.fill(what, leaving: room) }
      var error: (any Error)?
      do {
        _ = try AppChangeOperation(plan, saving: nil).run(&source)
      } catch let failure { error = failure }
      let reported = "\(what), room for \(room): \(error.map { "\($0)" } ?? "reported")"
      if let error {
        #expect(tellsWhatAndWhere(error), "\(reported)")
        #expect("\(error)".contains("no space"), "\(reported)")
      }
      try volume.empty()
      _ = try fixture.recover(reported)
      if let before {
        try State(fixture).expect(before, updatedBy: error == nil, reported)
      } else {
        try fixture.expectInstalledOrNot(mustBe: error == nil, reported)
      }
      outcomes.insert(error == nil)
    }
    #expect(outcomes == [true, false])
  }
}

/// A package that runs an action when its first entry is read.
struct InterruptedSource: PackageEntrySource {
  private var package: MemoryPackage
  private var action: (() throws -> Void)?

  init(_ package: MemoryPackage, _ action: @escaping () throws -> Void) {
    self.package = package
    self.action = action
  }

  mutating func next() throws(ModelError) -> PackageEntry? {
    if let action {
      self.action = nil
      do { try action() } catch { Issue.record(error) }
    }
    return try package.next()
  }

  mutating func read(into buffer: inout [UInt8]) throws(ModelError) -> Int {
    try package.read(into: &buffer)
  }
}

extension UpdateFixture {
  private static let waiting: ByteString =
    "phone/.sandboxctl/safe-harbor/apps/org.example.one/data/Documents/thesis.txt"

  /// Puts data for the app into the safe harbor.
  func fillHarbor() throws { try put("a thesis", Self.waiting) }

  /// Checks that the app is installed with the data from the safe harbor, or that nothing has
  /// changed.
  func expectInstalledOrNot(mustBe: Bool, _ what: String) throws {
    let device = try device()
    let version = device.apps.first { $0.identifier == Self.identifier && $0.isInstalled }?.version
    let isDone = version == "2.0"
    #expect(isDone || version == nil, "\(what)")
    #expect(isDone || !mustBe, "\(what)")
    if isDone {
      let home = try dataDirectory()
      let inner = ByteString(home.bytes.dropFirst(base.directory.path.count + 1))
      #expect(try base.text(inner.appending("Documents/thesis.txt")) == "a thesis", "\(what)")
      #expect((try? base.text(Self.waiting)) == nil, "\(what)")
    } else {
      #expect(try base.text(Self.waiting) == "a thesis", "\(what)")
      let shown = device.containers.filter { $0.owner == Self.identifier }.map(\.absolutePath)
      #expect(shown.allSatisfy { $0.isWithin(root.appending(".sandboxctl")) }, "\(what): \(shown)")
    }
    #expect(!hasStaging, "\(what)")
  }
}
