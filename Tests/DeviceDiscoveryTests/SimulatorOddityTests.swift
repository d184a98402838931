import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Damaged or unusual data on a device is reported as a finding, and hides no other data.
struct SimulatorOddityTests {
  @Test func bothContainersOfOneAppAreKept() throws {
    let device = try SimulatorDevice()
    for uuid in ["D1", "D2", "D3"] { try device.container(.data, uuid, "com.example.a") }
    try device.bundle("B1", "com.example.a", name: "A")
    try device.bundle("B2", "com.example.a", name: "A")
    try device.container(.group, "G2", "group.a")
    try device.container(.group, "G1", "group.a")
    let found = try device.find()
    #expect(
      found.logicalPrefixes == [
        "apps/com.example.a/bundle", "apps/com.example.a/data", "apps/com.example.a~B2/bundle",
        "apps/com.example.a~D2/data", "apps/com.example.a~D3/data", "groups/group.a",
        "groups/group.a~G2",
      ])
    #expect(found.findings(.claimedTwice).count == 4)
    #expect(found.apps.count == 1)
    #expect(found.containers(of: found.apps[0]).count == 5)
    #expect(
      found.container(at: SimulatorDevice.path(.data, "D1"))?.logicalPrefix
        == "apps/com.example.a/data")
  }

  @Test func metadataPrecedesAGuess() throws {
    let device = try SimulatorDevice()
    try device.container(.data, "D1", nil)
    try device.directory.file(
      SimulatorDevice.path(.data, "D1") + "/Library/Preferences/com.example.a.plist")
    try device.container(.data, "D2", "com.example.a")
    let found = try device.find()
    #expect(
      found.container(at: SimulatorDevice.path(.data, "D2"))?.logicalPrefix
        == "apps/com.example.a/data")
    #expect(
      found.container(at: SimulatorDevice.path(.data, "D1"))?.logicalPrefix
        == "apps/com.example.a~D1/data")
  }

  @Test func metadataOfAnotherAppIsReported() throws {
    let device = try SimulatorDevice()
    try device.bundle("B1", "com.example.a", name: "A", metadata: "com.example.b")
    try device.container(.data, "D1", "com.example.a", contentClass: 7)
    let found = try device.find()
    #expect(found.logicalPrefixes == ["apps/com.example.a/bundle", "apps/com.example.a/data"])
    let reasons = found.findings(.contradiction).map(\.reason)
    #expect(
      reasons == [
        "its metadata names 'com.example.b', its Info.plist 'com.example.a', "
          + "which takes precedence",
        "MCMMetadataContentClass is 7, but its location is that of kind data, "
          + "which takes precedence",
      ])
  }

  @Test(arguments: [
    ("garbage", "it is not a usable property list"), ("", "it is empty"),
    ("<plist><array/></plist>", "of the type array, not a dictionary"),
    ("<plist><dict/></plist>", "it has no CFBundleIdentifier"),
    (
      "<plist><dict><key>CFBundleIdentifier</key><integer>1</integer></dict></plist>",
      "CFBundleIdentifier has the type integer, not string"
    ),
  ])
  func invalidInfoPlistIsReportedAndTheRestFound(text: String, reason: String) throws {
    let device = try SimulatorDevice()
    try device.container(.bundle, "B1", "com.example.a")
    let file = SimulatorDevice.path(.bundle, "B1") + "/A.app/Info.plist"
    try device.directory.file(file, text)
    try device.container(.data, "D1", "com.example.b")
    let found = try device.find()
    #expect(found.logicalPrefixes == ["apps/com.example.a/bundle", "apps/com.example.b/data"])
    #expect(found.findings.count == 1)
    #expect(found.findings[0].path == ByteString(file))
    #expect(found.findings[0].severity == .warning)
    #expect(found.findings[0].reason.contains(reason), "\(found.findings[0])")
  }

  @Test func oversizedInfoPlistIsNotRead() throws {
    let device = try SimulatorDevice()
    try device.container(.bundle, "B1", nil)
    let file = SimulatorDevice.path(.bundle, "B1") + "/A.app/Info.plist"
    try device.directory.sparse(file, size: 100 << 20)
    let found = try device.find()
    #expect(found.logicalPrefixes == ["apps/~B1/bundle"])
    #expect(found.apps.isEmpty)
    #expect(
      found.findings(.unusableFile).map(\.reason)
        == ["it has 104857600 bytes, more than the limit of 8388608"])
  }

  @Test func specialFileAsInfoPlistIsNotOpened() throws {
    let device = try SimulatorDevice()
    for (uuid, number) in [("B1", 1), ("B2", 2), ("B3", 3)] {
      try device.container(.bundle, uuid, nil)
      let file = SimulatorDevice.path(.bundle, uuid) + "/A.app/Info.plist"
      switch number {
      case 1: try device.directory.makeDirectory(file)
      case 2: try device.directory.link(file, to: "/etc/passwd")
      default:
        try device.directory.makeDirectory(SimulatorDevice.path(.bundle, uuid) + "/A.app")
        #expect(mkfifo(device.directory.url.appendingPathComponent(file).path, 0o600) == 0)
      }
    }
    let found = try device.find()
    #expect(
      found.findings(.unusableFile).map(\.reason)
        == Array(repeating: "it is not a regular file and was not read", count: 3))
  }

  @Test func missingAndDuplicateBundlesAreReported() throws {
    let device = try SimulatorDevice()
    try device.container(.bundle, "B1", "com.example.a")
    try device.bundle("B2", "com.example.b", name: "B")
    try device.info(SimulatorDevice.path(.bundle, "B2") + "/Z.app", "com.example.z", name: "Z")
    try device.directory.makeDirectory(SimulatorDevice.path(.bundle, "B3") + "/C.app")
    let found = try device.find()
    #expect(found.findings(.noSingleBundle).count == 2)
    #expect(found.findings(.unusableFile).map(\.reason).first?.contains("it is missing") == true)
    #expect(
      found.logicalPrefixes == [
        "apps/com.example.a/bundle", "apps/com.example.b/bundle", "apps/~B3/bundle",
      ])
    #expect(found.apps.map(\.isInstalled) == [true, true])
  }

  @Test func hostileIdentifiersStayOneComponent() throws {
    let device = try SimulatorDevice()
    let names: [ByteString] = ["../../etc", "..", "a/b", "x~D9", "a%2Fb", "a\nb", "com.\u{e9}", ""]
    for (number, name) in names.enumerated() { try device.container(.data, "D\(number)", name) }
    try device.container(.data, "D8", ByteString(String(repeating: "x", count: 201)))
    let found = try device.find()
    #expect(
      Set(found.logicalPrefixes) == [
        "apps/~D0/data", "apps/~D1/data", "apps/~D2/data", "apps/x%7ED9/data",
        "apps/a%252Fb/data", "apps/a\nb/data", "apps/com.é/data", "apps/~D7/data", "apps/~D8/data",
      ])
    for container in found.containers {
      #expect(try LogicalPath(container.logicalPrefix).location?.container == container.logical)
    }
    let reasons = found.findings(.unusableName).map(\.reason)
    for reason in ["contains a '/'", "it is '..'", "201 bytes"] {
      #expect(reasons.contains { $0.contains(reason) }, "\(reason)")
    }
  }

  @Test func unexpectedEntriesAreReported() throws {
    let device = try SimulatorDevice()
    try device.directory.file("data/Containers/Data/Application/notes.txt", "x")
    try device.directory.file("data/Containers/Data/Application/.DS_Store", "x")
    try device.directory.file("data/Containers/README", "x")
    let found = try device.find()
    #expect(found.containers.isEmpty)
    #expect(
      found.findings(.orphan).map(\.path)
        == ["data/Containers/Data/Application/notes.txt", "data/Containers/README"])
  }

  @Test func linkedRootsAreFollowedOnceAndReported() throws {
    let device = try SimulatorDevice()
    let elsewhere = try TemporaryDirectory()
    try elsewhere.file("moved/Documents/a", "x")
    try elsewhere.makeDirectory("groups/G1")
    let data = SimulatorDevice.path(.data, "D1")
    try device.directory.link(data, to: elsewhere.string + "/moved")
    try device.directory.link("data/Containers/Shared", to: elsewhere.string)
    try elsewhere.makeDirectory("AppGroup/G1")
    try device.directory.link(SimulatorDevice.path(.data, "D2"), to: "../nowhere")
    try device.directory.link(SimulatorDevice.path(.data, "D3"), to: "D3")
    try device.directory.link(SimulatorDevice.path(.data, "D4"), to: "/")
    try device.directory.link(SimulatorDevice.path(.data, "D5"), to: elsewhere.string + "/moved")
    try device.directory.link(SimulatorDevice.path(.data, "D6"), to: "/etc/passwd")
    try device.directory.link(SimulatorDevice.path(.data, "D7"), to: "..")
    let found = try device.find()
    let container = try #require(found.container(at: data))
    #expect(container.absolutePath == ByteString(elsewhere.string + "/moved"))
    #expect(found.containers.map(\.uuid) == ["D1", "G1"])
    #expect(found.findings(.linkFollowed).count == 3)
    #expect(
      found.findings(.danglingLink).map(\.reason) == [
        "it is a link to '../nowhere', which does not exist",
        "it is a link to 'D3', which forms a loop",
      ])
    #expect(found.findings(.repeatedDirectory).count == 3)
    #expect(
      found.findings(.orphan).map(\.path).contains(ByteString(SimulatorDevice.path(.data, "D6"))))
    let inside = ByteString(elsewhere.string + "/moved/Documents/a")
    let logical = try #require(try found.logicalPath(ofPath: inside))
    #expect(
      try found.logicalPath(ofPath: found.root.appending(container.path).appending("Documents/a"))
        == logical)
    #expect(try found.realPath(of: logical) == inside)
  }

  @Test func mountsAreEnteredAndReported() throws {
    let device = try SimulatorDevice()
    try device.container(.data, "D1", nil)
    let inner = SimulatorDevice.path(.data, "D1")
    let path = device.directory.url.appendingPathComponent(inner).path
    guard Self.run("/bin/mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", path]) else {
      print("skipped: nothing can be mounted here")
      return
    }
    defer { _ = Self.run("/bin/umount", [path]) }
    try device.container(.data, "D1", "com.example.a")
    let found = try device.find()
    #expect(found.logicalPrefixes == ["apps/com.example.a/data"])
    #expect(found.findings.map(\.code) == [.mountEntered])
    #expect(found.findings.map(\.path) == [ByteString(inner)])
  }

  private static func run(_ program: String, _ arguments: [String]) -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  /// Each system call fails in turn: no container is lost silently.
  @Test func everyFailureIsReported() throws {
    let device = try SimulatorDevice()
    let bundle = try device.bundle("B1", "com.example.a", name: "A")
    try device.info(bundle + "/PlugIns/S.appex", "com.example.a.s", name: "S")
    try device.container(.data, "D1", "com.example.a")
    try device.container(.data, "D2", nil)
    try device.directory.file(
      SimulatorDevice.path(.data, "D2") + "/Library/Preferences/com.example.b.plist")
    try device.container(.extension, "E1", "com.example.a.s")
    let whole = try device.find()
    for operation: SystemError.Operation in [.open, .read, .list, .status] {
      for number in 1...500 {
        let plan = Faults.Plan(failing: [operation], at: number, number: EACCES)
        let result = Result { try Faults.inject(plan) { try device.find() } }
        guard plan.hasFired else { break }
        guard case .success(let found) = result else { continue }
        #expect(
          !found.findings(.unreadable).isEmpty || !found.findings(.unusableFile).isEmpty
            || found.containers == whole.containers && found.apps == whole.apps,
          "\(operation) \(number): \(found.findings)")
        #expect(number < 500)
      }
    }
  }

  @Test func unreadableContainerIsListed() throws {
    let device = try SimulatorDevice()
    try device.container(.data, "D1", "com.example.a")
    var seen = 0
    for number in 1...200 {
      let plan = Faults.Plan(failing: [.open], at: number, number: EACCES)
      guard let found = try? Faults.inject(plan, { try device.find() }), plan.hasFired else {
        continue
      }
      guard let container = found.containers.first, !container.isReadable else { continue }
      seen += 1
      #expect(container.logicalPrefix == "apps/~D1/data")
      #expect(
        found.findings(.unreadable).map(\.reason) == ["it cannot be opened: permission denied"])
    }
    #expect(seen == 1)
  }
}
