import BuiltinPolicies
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// Journals that somebody else wrote, or that are of another device, change nothing.
@Suite(.spreadScans) struct RecoveryTrustTests {
  private let rig: Fixture
  private let id = "20260101T000000-0123abcd"

  init() throws {
    rig = try Fixture(inMemory: true)
    try rig.directory.write("thesis", at: "victim/thesis.txt")
    try rig.directory.write("evil", at: "tree/staged/.bashrc")
  }

  /// Writes a journal by which a file of the device comes to a place, and what is there is kept.
  private func write(
    root: ByteString, inode: UInt64?, kept: ByteString? = nil, staging: [ByteString] = []
  ) throws {
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 1_767_225_600), subjects: ["folders/tree"],
      containers: ["folders/tree"])
    record.state = .moving
    record.staging = staging
    let staged = rig.directory.path("tree/staged")
    record.roots = [
      JournalRecord.Root(path: root, inode: inode),
      JournalRecord.Root(path: staged, inode: try inodeOf(staged)),
      JournalRecord.Root(path: kept ?? rig.directory.path("tree/.sandboxctl/trash/x"), inode: nil),
    ]
    record.steps = [
      JournalStep(path: ".bashrc", source: 1, kept: 2), JournalStep(path: "thesis.txt", kept: 2),
    ]
    let text = String(decoding: record.bytes, as: UTF8.self).replacing(record.id, with: id)
    try rig.directory.write(text, at: ByteString("tree/.sandboxctl/journal/\(id).json"))
    for name in ["tree/.sandboxctl/journal", "tree/.sandboxctl"] as [ByteString] {
      try Directory.open(path: rig.directory.path(name)).setPermissions(0o700)
    }
  }

  private func inodeOf(_ path: ByteString) throws -> UInt64 {
    try Directory.open(path: path).status().identity.inode
  }

  private func recover() throws -> RecoveryReport {
    let device = try Device.find(root: rig.directory.path("tree"), layout: .folder)
    return try Recovery(device, policy: try Fixture.policy(.folder), isForced: true).run()
  }

  private func expectRefused(_ place: ByteString) throws {
    let report = try recover()
    #expect(report.done.isEmpty)
    let error = try #require(report.blocked.first?.error)
    #expect(error.description.contains("'\(place)', which is in no container"), "\(error)")
    #expect(error.hint != nil)
    #expect(try rig.text("victim/thesis.txt") == "thesis")
    #expect(try rig.names("victim") == ["thesis.txt"])
  }

  /// What was read before the apps were locked may be done, and its places used anew, by then.
  @Test func whatAnotherRunHasRecoveredIsNotDoneAgain() throws {
    let tree = rig.directory.path("tree")
    try write(
      root: tree, inode: try inodeOf(tree),
      kept: tree.appending(ByteString(".sandboxctl/trash/\(id)")))
    let operation = try #require(try InterruptedOperation.all(on: tree).first)
    #expect(try recover().done.count == 1)
    #expect(try rig.text("tree/.bashrc") == "evil")
    try rig.directory.write("newer", at: "tree/staged/.bashrc")
    let device = try Device.find(root: tree, layout: .folder)
    let recovery = Recovery(device, policy: try Fixture.policy(.folder), isForced: true)
    #expect(try recovery.recover(operation) == nil)
    #expect(try rig.text("tree/.bashrc") == "evil")
  }

  @Test func aRootOutsideOfTheDeviceIsRefused() throws {
    let victim = rig.directory.path("victim")
    try write(root: victim, inode: try inodeOf(victim))
    try expectRefused(victim)
  }

  @Test func aRootThatGoesUpIsRefused() throws {
    let place = rig.directory.path("tree/../victim")
    try write(root: place, inode: try inodeOf(rig.directory.path("victim")))
    try expectRefused(place)
  }

  @Test func aRootWithoutAnInodeIsOnlyMadeInATrash() throws {
    let tree = rig.directory.path("tree")
    try write(root: tree, inode: nil)
    try expectRefused(tree)
  }

  @Test func aStagingPlaceOutsideOfTheDeviceIsRefused() throws {
    let (tree, victim) = (rig.directory.path("tree"), rig.directory.path("victim"))
    try write(root: tree, inode: try inodeOf(tree), staging: [victim])
    try expectRefused(victim)
  }

  @Test func aLinkInTheWayOfARootIsNotFollowed() throws {
    let victim = rig.directory.path("victim")
    try Directory.open(path: rig.directory.path("tree")).createLink("link", to: victim)
    try write(root: rig.directory.path("tree/link"), inode: try inodeOf(victim))
    let report = try recover()
    #expect(report.done.isEmpty && report.blocked.count == 1)
    #expect(try rig.names("victim") == ["thesis.txt"])
  }

  /// Writes the note of a directory that an interrupted operation left open.
  private func writeOpenedNote(_ directories: [ByteString], of directory: ByteString) throws {
    let paths = directories.map { #"{"path":"\#($0)"}"# }.joined(separator: ",")
    let inode = Int64(bitPattern: try inodeOf(directory))
    try rig.directory.write(
      #"{"format":1,"paths":[\#(paths)],"inode":\#(inode),"mode":511,"opened":448}"#,
      at: ByteString("tree/.sandboxctl/journal/\(id).opened"))
    try Directory.open(path: directory.parent).setPermissions(
      0o700, of: try #require(directory.lastComponent))
  }

  private func mode(of path: ByteString) throws -> UInt16 {
    try Directory.open(path: path).status().permissions
  }

  /// With the mode of the note anybody could write there: 0777.
  @Test(arguments: [[], ["x", "y"]]) func aNoteOfADirectoryOutsideOfTheDeviceChangesNoMode(
    _ others: [ByteString]
  ) throws {
    let (tree, victim) = (rig.directory.path("tree"), rig.directory.path("victim"))
    try write(root: tree, inode: try inodeOf(tree))
    try writeOpenedNote(others.map(tree.appending) + [victim], of: victim)
    #expect(try recover().done.count == 1)
    #expect(try mode(of: victim) == 0o700)
    #expect(try rig.names("tree/.sandboxctl/journal").isEmpty, "it is done with")
  }

  @Test(arguments: ["tree/../victim", "tree/link"] as [ByteString])
  func aNoteThatLeadsOutOfTheDeviceChangesNoMode(_ way: ByteString) throws {
    let (tree, victim) = (rig.directory.path("tree"), rig.directory.path("victim"))
    try Directory.open(path: tree).createLink("link", to: victim)
    try write(root: tree, inode: try inodeOf(tree))
    try writeOpenedNote([rig.directory.path(way)], of: victim)
    #expect(try recover().done.count == 1)
    #expect(try mode(of: victim) == 0o700)
  }

  @Test func theNoteOfADirectoryOfTheDevicePutsItsModeBack() throws {
    let (tree, own) = (rig.directory.path("tree"), rig.directory.path("tree/own"))
    _ = try Directory.make(path: own)
    try write(root: tree, inode: try inodeOf(tree))
    try writeOpenedNote([own], of: own)
    #expect(try recover().done.count == 1)
    #expect(try mode(of: own) == 0o777)
  }

  @Test func aJournalOfAnotherUserIsNotCarriedOut() throws {
    guard Host.userID == 0 else { return }
    let tree = rig.directory.path("tree")
    try write(root: tree, inode: try inodeOf(tree))
    let journal = try Directory.open(path: rig.directory.path("tree/.sandboxctl/journal"))
    try journal.setOwner(user: 1000, group: 1000, of: ByteString(id + ".json"))
    let error = #expect(throws: LifecycleError.self) { try recover() }
    #expect(error?.description.contains("it belongs to another user") == true)
    #expect(try rig.names("tree").contains(".bashrc") == false)
  }

  @Test func aJournalThatOthersCanWriteToIsNotCarriedOut() throws {
    let tree = rig.directory.path("tree")
    try write(root: tree, inode: try inodeOf(tree))
    try Directory.open(path: rig.directory.path("tree/.sandboxctl")).setPermissions(0o777)
    #expect(throws: LifecycleError.self) { try recover() }
    #expect(try rig.names("tree").contains(".bashrc") == false)
  }

  @Test func theSameJournalOfItsOwnDeviceIsCarriedOut() throws {
    let tree = rig.directory.path("tree")
    try write(root: tree, inode: try inodeOf(tree))
    #expect(try recover().done.map(\.steps) == [1])
    #expect(try rig.text("tree/.bashrc") == "evil")
  }

  /// Of 430,000 steps the values of JSON are more than a reader of one document takes.
  @Test func aJournalOfManyStepsIsRead() throws {
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 0), subjects: [], containers: ["folders/a"])
    record.state = .moving
    record.roots = [JournalRecord.Root(path: "/a", inode: 1), .init(path: "/b", inode: 2)]
    record.steps = JournalSteps(
      (0..<8).map { JournalStep(path: ByteString("file \($0)"), source: 1, kept: 1) })
    let lines = record.bytes.split(separator: UInt8(ascii: "\n"))
    let step = Array(lines[1]) + [UInt8(ascii: "\n")]
    var text = Array(lines[0]) + [UInt8(ascii: "\n")]
    let count = Sampling.isWhole ? 430_000 : 30_000
    for _ in 0..<count { text += step }
    text += lines[lines.count - 1]
    let read = try #require(JournalRecord(reading: text))
    #expect(read.steps.count == count + 1)
    #expect(read.steps.last == record.steps.last)
  }

  @Test func aJournalThatIsCutShortIsNotRead() throws {
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 0), subjects: [], containers: ["folders/a"])
    record.roots = [JournalRecord.Root(path: "/a", inode: 1)]
    record.steps = JournalSteps(
      (0..<3).map { JournalStep(path: ByteString("file \($0)"), kept: 0) })
    let bytes = record.bytes
    #expect(JournalRecord(reading: bytes) == record)
    for end in 0..<(bytes.count - 1) {
      #expect(JournalRecord(reading: Array(bytes[..<end])) == nil, "\(end)")
    }
  }
}
