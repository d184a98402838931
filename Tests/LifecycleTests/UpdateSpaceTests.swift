import ArchiveStore
import Foundation
import Lifecycle
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// An update and an installation onto a volume that has no room, or loses it meanwhile: by bytes, and by
/// the number of files that it can hold.
@Suite(.serialized, .enabled(if: (try? Mount.isPermitted()) ?? false))
struct UpdateSpaceTests {
  private static let package = MemoryPackage(
    files: ["Example": "new program", "data/table": String(repeating: "t", count: 9000)])

  @Test func whatDoesNotFitIsNotBegun() throws {
    let volume = try UpdateVolume("size=2m,nr_inodes=400")
    defer { withExtendedLifetime(volume) {} }
    let (rig, before) = (volume.rig, try volume.rig.rig.records("phone"))
    let large = MemoryPackage(files: ["table": String(repeating: "t", count: 3_000_000)])
    let many = MemoryPackage(
      files: Dictionary(uniqueKeysWithValues: (0..<450).map { ("small/\($0)", "") }))
    for (package, reason) in [
      (large, " are to be written, and"), (many, "files and directories are to be made"),
    ] {
      let error = #expect(throws: LifecycleError.self) { try rig.run(.update, package) }
      #expect(error?.description.contains("cannot update 'org.example.one' in '") ?? false)
      #expect(error?.description.contains(reason) ?? false, "\(error as Any)")
      #expect(error?.hint?.contains("free space") ?? false)
      #expect(error?.kind == .failed)
    }
    #expect(try rig.rig.records("phone") == before)
    #expect(try rig.rig.repository.snapshots().snapshots.isEmpty, "nothing was saved either")
    #expect(try rig.run(.update, Self.package).isComplete, "what fits is done")
  }

  /// Files are held in whole blocks, so that many small ones need more than their bytes.
  @Test func smallFilesTakeWholeBlocks() throws {
    let volume = try UpdateVolume("size=2m")
    defer { withExtendedLifetime(volume) {} }
    let small = MemoryPackage(
      files: Dictionary(uniqueKeysWithValues: (0..<600).map { ("small/\($0)", "text") }))
    #expect(small.app.size.bytes < 100_000)
    let error = #expect(throws: LifecycleError.self) { try volume.rig.run(.update, small) }
    #expect(error?.description.contains(" are to be written, and") ?? false)
    #expect(!volume.rig.hasStaging)
  }

  /// It is filled while the package is read, with room left for so much: nothing of what follows is
  /// certain then. After the recovery, with room, the device is as it was or as it was to be.
  @Test(arguments: UpdateVolume.Room.allCases, [true, false])
  func whatIsFilledMeanwhileIsWhole(_ what: UpdateVolume.Room, isUpdate: Bool) throws {
    let volume = try UpdateVolume("size=1m,nr_inodes=200", isInstalled: isUpdate)
    defer { withExtendedLifetime(volume) {} }
    let rig = volume.rig
    let before = isUpdate ? try State(rig) : nil
    var outcomes: Set<Bool> = []
    for room in what == .bytes ? Array(0..<16) : Array(stride(from: 0, to: 64, by: 4)) {
      try volume.empty()
      try volume.reset()
      let plan = try rig.plan(isUpdate ? .update : .install, Self.package) {
        ($0.isStrict, $0.savesFirst) = (isUpdate, false)
      }
      var source = InterruptedSource(Self.package) { try volume.fill(what, leaving: room) }
      var error: (any Error)?
      do {
        _ = try AppChangeOperation(plan, saving: rig.request, to: nil).run(&source)
      } catch let failure { error = failure }
      let told = "\(what), room for \(room): \(error.map { "\($0)" } ?? "reported")"
      if let error {
        #expect(tellsWhatAndWhere(error), "\(told)")
        #expect("\(error)".contains("no space"), "\(told)")
      }
      try volume.empty()
      _ = try rig.recover(told)
      if let before {
        try State(rig).expect(before, updatedBy: error == nil, told)
      } else {
        try rig.expectInstalledOrNot(mustBe: error == nil, told)
      }
      outcomes.insert(error == nil)
    }
    #expect(outcomes == [true, false])
  }
}

/// A package of which something is done when its first entry is read.
struct InterruptedSource: EntrySource {
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

  /// Data that waits for the app.
  func fillHarbor() throws { try put("a thesis", Self.waiting) }

  /// The app was installed and has the data that waited, or nothing was done and it waits.
  func expectInstalledOrNot(mustBe: Bool, _ what: String) throws {
    let device = try device()
    let version = device.apps.first { $0.identifier == Self.identifier && $0.isInstalled }?.version
    let isDone = version == "2.0"
    #expect(isDone || version == nil, "\(what)")
    #expect(isDone || !mustBe, "\(what)")
    if isDone {
      let home = try dataDirectory()
      let inner = ByteString(home.bytes.dropFirst(rig.directory.path.count + 1))
      #expect(try rig.text(inner.appending("Documents/thesis.txt")) == "a thesis", "\(what)")
      #expect((try? rig.text(Self.waiting)) == nil, "\(what)")
    } else {
      #expect(try rig.text(Self.waiting) == "a thesis", "\(what)")
      let shown = device.containers.filter { $0.owner == Self.identifier }.map(\.absolutePath)
      #expect(shown.allSatisfy { $0.isWithin(root.appending(".sandboxctl")) }, "\(what): \(shown)")
    }
    #expect(!hasStaging, "\(what)")
  }
}
