import BuiltinPolicies
import Codecs
import DeviceDiscovery
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// Journals that another user wrote, or that belong to another device, change nothing.
@Suite(.spreadScans) struct RecoveryTrustTests {
  private let fixture: Fixture
  private let id = "20260101T000000-0123abcd"

  init() throws {
    fixture = try Fixture(inMemory: true)
    try fixture.directory.write("thesis", at: "victim/thesis.txt")
    try fixture.directory.write("evil", at: "tree/staged/.bashrc")
  }

  /// Writes a journal that moves a file of the device into place and keeps the existing one.
  private func write(
    root: ByteString, inode: UInt64?, kept: ByteString? = nil, staging: [ByteString] = [],
    device: ByteString? = nil
  ) throws {
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 1_767_225_600), subjects: ["folders/tree"],
      containers: ["folders/tree"])
    record.state = .moving
    (record.staging, record.device) = (staging, device)
    let staged = fixture.directory.path("tree/staged")
    record.roots = [
      JournalRecord.Root(path: root, inode: inode),
      JournalRecord.Root(path: staged, inode: try inodeOf(staged)),
      JournalRecord.Root(
        path: kept ?? fixture.directory.path("tree/.sandboxctl/trash/x"), inode: nil),
    ]
    record.steps = [
      JournalStep(path: ".bashrc", source: 1, kept: 2), JournalStep(path: "thesis.txt", kept: 2),
    ]
    let text = String(decoding: record.bytes, as: UTF8.self).replacing(record.id, with: id)
    try fixture.directory.write(text, at: ByteString("tree/.sandboxctl/journal/\(id).json"))
    for name in ["tree/.sandboxctl/journal", "tree/.sandboxctl"] as [ByteString] {
      try Directory.open(path: fixture.directory.path(name)).setPermissions(0o700)
    }
  }

  private func inodeOf(_ path: ByteString) throws -> UInt64 {
    try Directory.open(path: path).status().identity.inode
  }

  private func recover() throws -> RecoveryReport {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    return try Recovery(device, policy: try Fixture.policy(.folder), isForced: true).run()
  }

  private func expectRefused(_ location: ByteString) throws {
    let report = try recover()
    #expect(report.done.isEmpty)
    let error = try #require(report.blocked.first?.error)
    #expect(
      error.description.contains("'\(location)', which is outside the containers"), "\(error)")
    #expect(error.hint != nil)
    #expect(try fixture.text("victim/thesis.txt") == "thesis")
    #expect(try fixture.names("victim") == ["thesis.txt"])
  }

  /// Another process may recover an operation after it was read and before the apps are locked, and
  /// its paths may then be used for other files.
  @Test func anOperationThatAnotherProcessRecoveredIsNotRepeated() throws {
    let tree = fixture.directory.path("tree")
    try write(
      root: tree, inode: try inodeOf(tree),
      kept: tree.appending(ByteString(".sandboxctl/trash/\(id)")))
    let operation = try #require(try InterruptedOperation.all(on: tree).first)
    #expect(try recover().done.count == 1)
    #expect(try fixture.text("tree/.bashrc") == "evil")
    try fixture.directory.write("newer", at: "tree/staged/.bashrc")
    let device = try Device.find(root: tree, layout: .folder)
    let recovery = Recovery(device, policy: try Fixture.policy(.folder), isForced: true)
    #expect(try recovery.recover(operation) == nil)
    #expect(try fixture.text("tree/.bashrc") == "evil")
  }

  @Test func aRootOutsideOfTheDeviceIsRefused() throws {
    let victim = fixture.directory.path("victim")
    try write(root: victim, inode: try inodeOf(victim))
    try expectRefused(victim)
  }

  /// After a crash, a disk may be mounted at another path.
  @Test func theJournalOfADeviceThatWasMovedIsExecuted() throws {
    let (now, before) = (fixture.directory.path("tree"), fixture.directory.path("old/tree"))
    let trash = before.appending(ByteString(".sandboxctl/trash/\(id)"))
    try write(root: before, inode: try inodeOf(now), kept: trash)
    try expectRefused(before)
    try write(root: before, inode: try inodeOf(now), kept: trash, device: before)
    #expect(try recover().done.map(\.steps) == [1])
    #expect(try fixture.text("tree/.bashrc") == "evil")
    #expect(try InterruptedOperation.all(on: now).isEmpty)
  }

  @Test func aRootWithAParentReferenceIsRefused() throws {
    let location = fixture.directory.path("tree/../victim")
    try write(root: location, inode: try inodeOf(fixture.directory.path("victim")))
    try expectRefused(location)
  }

  @Test func aRootWithoutAnInodeIsOnlyCreatedInATrash() throws {
    let tree = fixture.directory.path("tree")
    try write(root: tree, inode: nil)
    try expectRefused(tree)
  }

  @Test func aStagingDirectoryOutsideOfTheDeviceIsRefused() throws {
    let (tree, victim) = (fixture.directory.path("tree"), fixture.directory.path("victim"))
    try write(root: tree, inode: try inodeOf(tree), staging: [victim])
    try expectRefused(victim)
  }

  @Test func aLinkInThePathOfARootIsNotFollowed() throws {
    let victim = fixture.directory.path("victim")
    try Directory.open(path: fixture.directory.path("tree")).createLink("link", to: victim)
    try write(root: fixture.directory.path("tree/link"), inode: try inodeOf(victim))
    let report = try recover()
    #expect(report.done.isEmpty && report.blocked.count == 1)
    #expect(try fixture.names("victim") == ["thesis.txt"])
  }

  /// Writes the record of a directory that an interrupted operation made writable.
  private func writeOpenedNote(_ directories: [ByteString], of directory: ByteString) throws {
    let paths = directories.map { #"{"path":"\#($0)"}"# }.joined(separator: ",")
    let inode = Int64(bitPattern: try inodeOf(directory))
    try fixture.directory.write(
      #"{"format":1,"paths":[\#(paths)],"inode":\#(inode),"mode":511,"opened":448}"#,
      at: ByteString("tree/.sandboxctl/journal/\(id).opened"))
    try Directory.open(path: directory.parent).setPermissions(
      0o700, of: try #require(directory.lastComponent))
  }

  private func mode(of path: ByteString) throws -> UInt16 {
    try Directory.open(path: path).status().permissions
  }

  /// With the recorded mode, 0777, every user could write there.
  @Test(arguments: [[], ["x", "y"]]) func aRecordOfADirectoryOutsideOfTheDeviceChangesNoMode(
    _ others: [ByteString]
  ) throws {
    let (tree, victim) = (fixture.directory.path("tree"), fixture.directory.path("victim"))
    try write(root: tree, inode: try inodeOf(tree))
    try writeOpenedNote(others.map(tree.appending) + [victim], of: victim)
    #expect(try recover().done.count == 1)
    #expect(try mode(of: victim) == 0o700)
    #expect(try fixture.names("tree/.sandboxctl/journal").isEmpty, "the journal is deleted")
  }

  @Test(arguments: ["tree/../victim", "tree/link"] as [ByteString])
  func aRecordThatLeadsOutOfTheDeviceChangesNoMode(_ way: ByteString) throws {
    let (tree, victim) = (fixture.directory.path("tree"), fixture.directory.path("victim"))
    try Directory.open(path: tree).createLink("link", to: victim)
    try write(root: tree, inode: try inodeOf(tree))
    try writeOpenedNote([fixture.directory.path(way)], of: victim)
    #expect(try recover().done.count == 1)
    #expect(try mode(of: victim) == 0o700)
  }

  @Test func aRecordOfADirectoryOfTheDeviceRestoresItsMode() throws {
    let (tree, own) = (fixture.directory.path("tree"), fixture.directory.path("tree/own"))
    _ = try Directory.make(path: own)
    try write(root: tree, inode: try inodeOf(tree))
    try writeOpenedNote([own], of: own)
    #expect(try recover().done.count == 1)
    #expect(try mode(of: own) == 0o777)
  }

  /// Root accepts the records of the device's owner, but they may name directories of other users
  /// in the device.
  @Test(.enabled(if: Host.userID == 0))
  func aRecordOfADirectoryOfAnotherUserChangesNoMode() throws {
    let (tree, own) = (fixture.directory.path("tree"), fixture.directory.path("tree/own"))
    _ = try Directory.make(path: own)
    try write(root: tree, inode: try inodeOf(tree))
    try writeOpenedNote([own], of: own)
    try Directory.open(path: own).setOwner(user: 1000, group: 1000)
    #expect(try recover().done.count == 1)
    #expect(try mode(of: own) == 0o700)
    #expect(try fixture.names("tree/.sandboxctl/journal").isEmpty, "the record is deleted")
  }

  /// Without access to the lock, the user of the device could neither see nor recover an operation
  /// of root.
  @Test(.enabled(if: Host.userID == 0)) func theJournalAndItsLockBelongToTheUser() throws {
    let tree = fixture.directory.path("tree")
    try Directory.open(path: tree).setOwner(user: 1234, group: 1234)
    let record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 1_767_225_600), subjects: ["folders/tree"],
      containers: ["folders/tree"])
    let journal = try OperationJournal(record, root: tree)
    try journal.prepare(0, stagingIn: [tree])
    let directory = try ControlDirectory.make(ControlDirectory.journal, root: tree)
    for name in [OperationJournal.file(record.id), OperationJournal.lock(record.id)] {
      #expect(try directory.status(name).user == 1234, "\(name)")
    }
    try journal.end()
  }

  /// Root finds the system's data of snaps as well, which a journal of the user must not change.
  @Test(.enabled(if: Host.userID == 0), arguments: [1234, 0] as [UInt32])
  func aJournalOfAUserDoesNotChangeDataOfTheSystem(writer: UInt32) throws {
    let base = fixture.directory.path("sys")
    let (snaps, system) = (base.appending("home/u/snap"), base.appending("var/snap/daemon/common"))
    try fixture.directory.write("kept", at: "sys/var/snap/daemon/common/config")
    try fixture.directory.write("evil", at: "sys/home/u/snap/app/common/config")
    try Directory.open(path: snaps).setOwner(user: 1234, group: 1234)
    let device = try Device.find(root: snaps, layout: .snap)
    #expect(device.containers.contains { $0.absolutePath == system }, "root finds it")
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 1_767_225_600), subjects: ["apps/app"],
      containers: ["apps/app/data"])
    (record.state, record.device) = (.moving, device.root)
    let staged = snaps.appending("app/common")
    record.roots = [
      JournalRecord.Root(path: system, inode: try inodeOf(system)),
      JournalRecord.Root(path: staged, inode: try inodeOf(staged)),
      JournalRecord.Root(path: snaps.appending(".sandboxctl/trash/x"), inode: nil),
    ]
    record.steps = [JournalStep(path: "config", source: 1, kept: 2)]
    let journal = try ControlDirectory.make(ControlDirectory.journal, root: device.root)
    try OperationJournal.write(record, in: journal)
    let file = OperationJournal.file(record.id)
    #expect(try journal.status().user == 1234)
    #expect(try journal.status(file).user == 0, "it stays root's, or root could not recover it")
    try journal.setOwner(user: writer, group: writer, of: file)
    let report = try Recovery(device, policy: try Fixture.policy(.snap), isForced: true).run()
    #expect(report.blocked.map(\.error.code) == (writer == 0 ? [] : [.journalForeign]))
    #expect(
      try fixture.text("sys/var/snap/daemon/common/config") == (writer == 0 ? "evil" : "kept"))
  }

  /// Another user creates `.sandboxctl`, or a directory in it, just before the program does.
  @Test(.enabled(if: Host.userID == 0), arguments: [1, 2])
  func aDirectoryThatAnotherUserCreatesMeanwhileIsRefused(call: Int) throws {
    let tree = fixture.directory.path("tree")
    let plan = Faults.Plan(before: [.createDirectory], at: call) {
      guard let device = try? Directory.open(path: tree),
        let own = try? device.makeDirectory(".sandboxctl", permissions: 0o700)
      else { return }
      if call == 1 {
        try? own.setOwner(user: 1000, group: 1000)
      } else if let trash = try? own.makeDirectory("trash", permissions: 0o700) {
        try? trash.setOwner(user: 1000, group: 1000)
      }
    }
    let error = #expect(throws: SystemError.self) {
      try Faults.inject(plan) { _ = try ControlDirectory.make(ControlDirectory.trash, root: tree) }
    }
    #expect(plan.hasFired && error?.code == .notTrusted, "\(error as Any)")
  }

  /// The device's user renames a directory of root to `.sandboxctl`: it stays root's.
  @Test(.enabled(if: Host.userID == 0)) func aDirectoryOfRootIsNotGivenToTheDevicesUser() throws {
    try fixture.directory.write("secret", at: "tree/of-root/file")
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    try tree.directory("of-root").setPermissions(0o700)
    try tree.setOwner(user: 1234, group: 1234)
    try tree.rename("of-root", to: ".sandboxctl", in: tree)
    _ = try ControlDirectory.make(ControlDirectory.trash, root: tree.path)
    #expect(try tree.status(".sandboxctl").user == 0)
    try tree.removeTree(".sandboxctl")
    let trash = try ControlDirectory.make(ControlDirectory.trash, root: tree.path)
    #expect(try tree.status(".sandboxctl").user == 1234 && trash.status().user == 1234)
  }

  /// The home directory of a device was found at a path without links, and is not looked up again.
  @Test func aLinkInPlaceOfAHomeDirectoryIsNotFollowed() throws {
    let (home, victim) = (fixture.directory.path("home"), fixture.directory.path("victim"))
    _ = try Directory.make(path: home.appending("Library/Containers"))
    let device = try Device.find(root: home, layout: .macOS)
    func permits(_ path: ByteString) -> Bool {
      DeviceScope(device, includesHome: true).permits(path.appending("thesis.txt"))
    }
    #expect(permits(device.root))
    let above = try Directory.open(path: home.parent)
    try above.rename("home", to: "moved", in: above)
    try above.createLink("home", to: victim)
    #expect(permits(device.root))
    #expect(try !permits(victim) && !permits(Host.realPath(victim)))
  }

  @Test func aJournalOfAnotherUserIsNotExecuted() throws {
    guard Host.userID == 0 else { return }
    let tree = fixture.directory.path("tree")
    try write(root: tree, inode: try inodeOf(tree))
    let journal = try Directory.open(path: fixture.directory.path("tree/.sandboxctl/journal"))
    try journal.setOwner(user: 1000, group: 1000, of: ByteString(id + ".json"))
    let error = #expect(throws: OperationError.self) { try recover() }
    #expect(error?.description.contains("it belongs to another user") == true)
    #expect(try fixture.names("tree").contains(".bashrc") == false)
  }

  @Test func aJournalThatOthersCanWriteIsNotExecuted() throws {
    let tree = fixture.directory.path("tree")
    try write(root: tree, inode: try inodeOf(tree))
    try Directory.open(path: fixture.directory.path("tree/.sandboxctl")).setPermissions(0o777)
    #expect(throws: OperationError.self) { try recover() }
    #expect(try fixture.names("tree").contains(".bashrc") == false)
  }

  @Test func theSameJournalOfItsOwnDeviceIsExecuted() throws {
    let tree = fixture.directory.path("tree")
    try write(root: tree, inode: try inodeOf(tree))
    #expect(try recover().done.map(\.steps) == [1])
    #expect(try fixture.text("tree/.bashrc") == "evil")
  }

  /// 430,000 steps have more JSON values than the reader of a single document accepts, as do 1,000
  /// steps with a smaller limit.
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
    let count = Sampling.isWhole ? 430_000 : 1000
    for _ in 0..<count { text += step }
    text += lines[lines.count - 1]
    let read = try #require(JournalRecord(reading: text, values: 16))
    #expect(read.steps.count == count + 1)
    #expect(read.steps.last == record.steps.last)
    #expect(throws: CodecError.self) {
      try JSON(parsing: text, limits: JSON.Limits(values: Sampling.isWhole ? 1 << 21 : 4000))
    }
  }

  /// A line is never read into memory as a whole if it is too long.
  @Test func aStepWithAnEndlessLineIsRefused() throws {
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 0), subjects: [], containers: ["folders/a"])
    record.roots = [JournalRecord.Root(path: "/a", inode: 1)]
    record.steps = [JournalStep(path: "file", kept: 0)]
    let lines = record.bytes.split(separator: UInt8(ascii: "\n"))
    let spaces = { (count: Int) in [UInt8](repeating: UInt8(ascii: " "), count: count) }
    for (count, isRead) in [(100, true), (JournalRecord.lineLimit, false), (40 << 20, false)] {
      var text = Array(lines[0])
      text += [UInt8(ascii: "\n")]
      text += spaces(count)
      text += lines[1]
      #expect((JournalRecord(reading: text) != nil) == isRead, "\(count)")
    }
    // The remainder of such a file is not read.
    let directory = try TemporaryDirectory("journal", inMemory: true)
    var endless = Array(lines[0])
    endless += [UInt8(ascii: "\n")]
    endless += spaces(40 << 20)
    try directory.write(endless, at: "journal.json")
    let counting = Faults.Plan(failing: [.read], at: .max, number: 5)
    let read = try Faults.inject(counting) {
      try JournalRecord.read(try directory.directory.file("journal.json"))
    }
    #expect(read == nil && counting.count < 10, "\(counting.count)")
  }

  @Test func theSizeOfAJournalIsKnownBeforeItIsWritten() {
    var record = JournalRecord(
      operation: "restore", time: Timestamp(seconds: 0), subjects: [], containers: ["folders/a"])
    record.roots = [JournalRecord.Root(path: "/a", inode: 1)]
    record.steps = JournalSteps(
      (0..<100).map { JournalStep(path: ByteString("file \($0)"), source: 0, kept: 0) })
    let lines = record.bytes.split(separator: UInt8(ascii: "\n"))
    let size = record.bytes.count - lines[0].count - 1
    #expect(record.steps.fitInJournal(of: size))
    #expect(!record.steps.fitInJournal(of: size - 10))
  }

  @Test func aTruncatedJournalIsNotRead() throws {
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
