import ArchiveStore
import DeviceDiscovery
import DeviceScan
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// Which files a backup reads in an app's bundle, and in containers that were moved.
@Suite(.spreadScans) struct BundleTests {
  /// A simulator's device with one app.
  private struct Phone {
    let fixture: Fixture
    static let containers: ByteString = "phone/data/Containers"
    var root: ByteString { fixture.directory.path("phone") }

    init() throws {
      fixture = try Fixture()
      try fixture.directory.write("<plist><dict/></plist>", at: "phone/device.plist")
      try write(bundle: "B1", version: "1.2")
      try writeData("D1")
    }

    func write(bundle uuid: ByteString, version: String) throws {
      let top = Self.containers.appending("Bundle/Application").appending(uuid)
      let app = top.appending("Example.app")
      try fixture.directory.write(
        """
        <plist><dict><key>CFBundleIdentifier</key><string>org.example.one</string>
        <key>CFBundleShortVersionString</key><string>\(version)</string>
        <key>CFBundleVersion</key><string>7</string></dict></plist>
        """, at: app.appending("Info.plist"))
      for number in 0..<20 {
        try fixture.directory.write(
          "resource \(number)", at: app.appending(ByteString("r/\(number)")))
      }
      try fixture.directory.write("program", at: app.appending("Example"))
    }

    func writeData(_ uuid: ByteString) throws {
      let data = Self.containers.appending("Data/Application").appending(uuid)
      let metadata = ".com.apple.mobile_container_manager.metadata.plist"
      try fixture.directory.write(
        """
        <plist><dict><key>MCMMetadataIdentifier</key><string>org.example.one</string></dict></plist>
        """, at: data.appending(ByteString(metadata)))
      for number in 0..<10 {
        try fixture.directory.write(
          "note \(number)", at: data.appending(ByteString("Documents/\(number)")))
      }
    }

    func path(_ kind: ByteString) -> ByteString {
      fixture.directory.path(Self.containers).appending(kind).appending("Application")
    }

    /// Moves a container to another UUID: by renaming it, or as a copy with the same times.
    func move(_ kind: ByteString, _ old: ByteString, to new: ByteString, asCopy: Bool) throws {
      let directory = try Directory.open(path: path(kind))
      guard asCopy else { return try directory.rename(old, to: new, in: directory) }
      let outcome = try Program.run(
        "cp", ["-a", "\(path(kind).appending(old))", "\(path(kind).appending(new))"])
      #expect(outcome.code == 0)
      try directory.removeTree(old)
    }

    func scan(for destination: Destination = .unrestricted) throws -> DeviceScan {
      let device = try DeviceFinder(machineID: "m", systemFlatpak: nil).find(root)
      return DeviceScan.run(
        device, policy: try Fixture.policy(.coreSimulator),
        options: ScanOptions(destination: destination))
    }

    func backup(
      _ scan: DeviceScan? = nil, _ change: (inout BackupRequest) -> Void = { _ in }
    ) throws -> BackupReport {
      var request = BackupRequest(
        program: "test", workers: 2, cache: fixture.directory.path("cache"),
        now: { Timestamp(seconds: Host.now().seconds + 3600) }, counters: ProgressCounters())
      change(&request)
      return try BackupOperation(
        BackupPlan.make(scan ?? self.scan()), to: fixture.repository, request
      ).run()
    }
  }

  @Test(arguments: [false, true])
  func anUnchangedBundleIsNotOpenedUnderANewUUID(asCopy: Bool) throws {
    let phone = try Phone()
    let first = try phone.backup()
    #expect(first.opened == 22 + 11)
    #expect(try phone.backup().opened == 0)
    try phone.move("Bundle", "B1", to: "B2", asCopy: asCopy)
    let second = try phone.backup()
    #expect(second.opened == 0, "the bundle is unchanged")
    #expect(second.files == first.files && second.bytes == first.bytes)
    #expect(try phone.backup().opened == 0, "and is known under its new name")
    _ = try phone.fixture.restore(second, "apps/org.example.one/bundle", to: "back")
    #expect(try phone.fixture.text("back/Example.app/r/7") == "resource 7")
    #expect(try phone.fixture.text("back/Example.app/Example") == "program")
    try phone.move("Bundle", "B2", to: "B3", asCopy: true)
    #expect(try phone.backup { $0.verifiesBundles = true }.opened == 22)
  }

  /// The compared metadata does not show attributes, so they are read.
  @Test func anAttributeSetSinceTheLastBackupIsStored() throws {
    let phone = try Phone()
    _ = try phone.backup()
    try phone.move("Bundle", "B1", to: "B2", asCopy: true)
    let app = try Directory.open(path: phone.path("Bundle").appending("B2/Example.app"))
    try app.attributes(of: "Example").set("user.signed", to: Array("yes".utf8))
    let report = try phone.backup()
    #expect(report.opened == 0)
    _ = try phone.fixture.restore(report, "apps/org.example.one/bundle", to: "back")
    let back = try Directory.open(path: phone.fixture.directory.path("back/Example.app"))
    #expect(try back.attributes(of: "Example").value(of: "user.signed") == Array("yes".utf8))
  }

  /// A change of a file's metadata that does not affect its mode, owner, size and times.
  enum MetadataChange: CaseIterable {
    case accessList, newAttribute, changedAttribute, removedAttribute, flag

    /// An ACL (acl(5)) that allows the user 1234 to read, as mode 644 also does.
    private static let list: [UInt8] =
      [2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 0xd2, 4, 0, 0]
      + [4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 4, 0, 255, 255, 255, 255]
      + [32, 0, 4, 0, 255, 255, 255, 255]

    func callAsFunction(_ name: ByteString, in directory: borrowing Directory) throws {
      let attributes = directory.attributes(of: name)
      switch self {
      case .accessList: try attributes.set("system.posix_acl_access", to: Self.list)
      case .newAttribute: try attributes.set("user.new", to: Array("new".utf8))
      case .changedAttribute: try attributes.set("user.kept", to: Array("after".utf8))
      case .removedAttribute: try attributes.remove("user.kept")
      // "d" (no dump): a flag that every user may set.
      case .flag: try directory.file(name).setFlags(0x40)
      }
    }
  }

  /// Only the change time shows the change, and a copy has another change time anyway.
  @Test(arguments: MetadataChange.allCases, [false, true])
  func changedMetadataIsStored(_ change: MetadataChange, asCopy: Bool) throws {
    let phone = try Phone()
    let resources: ByteString = "Example.app/r"
    func file(_ uuid: ByteString) throws -> TreeRecord {
      let path = phone.path("Bundle").appending(uuid).appending(resources)
      let inner = ByteString(path.bytes.dropFirst(phone.fixture.directory.path.count + 1))
      return try #require(try phone.fixture.records(inner)["7"])
    }
    func directory(_ uuid: ByteString) throws -> Directory {
      try Directory.open(path: phone.path("Bundle").appending(uuid).appending(resources))
    }
    let resource = try directory("B1")
    try resource.setPermissions(0o644, of: "7")
    try resource.attributes(of: "7").set("user.kept", to: Array("before".utf8))
    _ = try phone.backup()
    try phone.move("Bundle", "B1", to: "B2", asCopy: asCopy)
    let before = try file("B2")
    do {
      try change("7", in: directory("B2"))
    } catch let error as SystemError where error.isUnsupported {
      return print("skipped: \(change): \(error)")
    }
    let now = try file("B2")
    #expect(now != before && now.permissions == before.permissions)
    let report = try phone.backup()
    // A renamed bundle is still the same directory, so its changed file is read.
    #expect(report.opened == (asCopy ? 0 : 1))
    _ = try phone.fixture.restore(report, "apps/org.example.one/bundle", to: "back")
    #expect(try phone.fixture.records("back/Example.app/r")["7"] == now)
    try? directory("B2").file("7").setFlags(0)
  }

  @Test func aBundleThatDiffersIsRead() throws {
    let phone = try Phone()
    _ = try phone.backup()
    try phone.move("Bundle", "B1", to: "B2", asCopy: true)
    // The same size with other content and another time, as after a developer's build.
    let app = phone.path("Bundle").appending("B2/Example.app")
    let program = try Directory.open(path: app).fileForWriting("Example")
    try program.write(Array("PROGRAM".utf8), at: 0)
    try program.close()
    let report = try phone.backup()
    #expect(report.opened == 22)
    _ = try phone.fixture.restore(report, "apps/org.example.one/bundle", to: "back")
    #expect(try phone.fixture.text("back/Example.app/Example") == "PROGRAM")
    // A bundle with another version is read, regardless of its files' metadata.
    let directory = try Directory.open(path: phone.path("Bundle"))
    try directory.removeTree("B2")
    try phone.write(bundle: "B3", version: "1.3")
    #expect(try phone.backup().opened == 22)
  }

  /// Backups with and without bundles that are based on each other have the same trees as backups
  /// that are based on none.
  @Test func bundlesInACloudComeAndGo() throws {
    let phone = try Phone()
    let cloud = Destination(isCloud: true, isUnencrypted: true)
    let whole = try phone.backup(phone.scan(for: Destination(isUnencrypted: true)))
    let first = try phone.backup(phone.scan(for: cloud))
    #expect(whole.files == 33 && first.files == 11)
    for (destination, wanted) in [
      (cloud.withBundles, whole), (cloud, first), (cloud.withBundles, whole),
      (cloud.withBundles, whole), (cloud, first),
    ] {
      let report = try phone.backup(phone.scan(for: destination))
      #expect(report.isComplete && report.files == wanted.files)
      #expect(report.snapshot?.snapshot.tree == wanted.snapshot?.snapshot.tree)
      let left = report.snapshot?.snapshot.excluded.map(\.path) ?? []
      #expect(left.contains { $0.isWithin("apps/org.example.one/bundle") } == (wanted.files == 11))
    }
  }

  @Test func aContainerRenamedDuringTheBackupIsReported() throws {
    let phone = try Phone()
    let scan = try phone.scan()
    try phone.move("Data", "D1", to: "D2", asCopy: false)
    let report = try phone.backup(scan)
    #expect(!report.isComplete)
    #expect(report.unreadable.map(\.path) == ["apps/org.example.one/data"])
    #expect(report.unreadable.first?.remark.contains("renamed during the backup") == true)
    // The rest is stored, and the next backup stores everything.
    #expect(report.files == 22)
    let next = try phone.backup()
    #expect(next.isComplete && next.files == 33)
  }

  @Test func anAppDeletedDuringTheBackupIsAWarning() throws {
    let phone = try Phone()
    let scan = try phone.scan()
    try Directory.open(path: phone.path("Data")).removeTree("D1")
    let report = try phone.backup(scan)
    #expect(report.isComplete)
    #expect(report.warnings.map(\.path) == ["apps/org.example.one/data"])
    #expect(report.warnings.first?.remark == "it was removed during the backup")
    #expect(report.files == 22)
  }

  @Test func aBackupOfOneAppKeepsTheStateOfTheOthers() throws {
    let phone = try Phone()
    let whole = try phone.backup()
    var part = try phone.scan()
    part = DeviceScan.run(part.device, policy: part.policy) { $0.kind == .data }
    let second = try phone.backup(part) {
      $0.scope = .apps(["org.example.one"])
      $0.isPart = true
    }
    #expect(second.opened == 0 && second.files == 11)
    #expect(second.snapshot?.snapshot.parent == nil, "no other snapshot has that scope")
    #expect(second.snapshot?.snapshot.sequence == 2)
    let third = try phone.backup()
    #expect(third.opened == 0 && third.files == 33)
    #expect(third.snapshot?.snapshot.parent == whole.snapshot?.id)
  }
}
