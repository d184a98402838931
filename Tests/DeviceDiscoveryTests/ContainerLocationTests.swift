import DeviceDiscovery
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The locations of new containers: always inside the layout's own directories, whatever name an
/// app, a snapshot or a package gives them.
@Suite struct ContainerLocationTests {
  private static let hostile: [ByteString] = [
    "..", ".", ".sandboxctl", "../LaunchAgents", "../../../outside/x", "/etc", "a/b", "a\0b", "",
    ByteString(String(repeating: "x", count: 256)),
  ]
  private static let uuid: ByteString = "0A0A0A0A-0000-4000-8000-000000000001"

  private let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  private func device(
    _ layout: Layout, _ path: ByteString, making directories: [ByteString]
  ) throws -> Device {
    for name in directories { _ = try Directory.make(path: directory.path(name)) }
    let finder = DeviceFinder(layout: layout, machineID: "m", systemFlatpak: nil)
    return try finder.find(directory.path(path))
  }

  @Test(arguments: hostile)
  func hostileIdentifiersHaveNoLocation(name: ByteString) throws {
    let hostile = LogicalName(name)
    let mac = try device(.macOS, "home", making: ["home/Library/Containers"])
    for container in [
      LogicalContainer.data(hostile), .group(hostile), .extension(hostile, of: LogicalName("a")),
    ] {
      let error = #expect(throws: ModelError.self) { try mac.place(forNew: container) }
      #expect(error?.code == .containerName)
    }
    let flatpak = try device(.flatpak, "home/.var/app", making: ["home/.var/app/org.a.A"])
    #expect(throws: ModelError.self) { try flatpak.place(forNew: .data(hostile)) }
    #expect(throws: ModelError.self) { try flatpak.place(forNew: .settings(hostile)) }
  }

  @Test(arguments: hostile + ["latest", "1x", "x"])
  func onlyRevisionsNameSnapDirectories(name: ByteString) throws {
    let snap = try device(.snap, "home/snap", making: ["home/snap/editor/common"])
    let revision = LogicalContainer.revision(LogicalName("editor"))
    #expect(throws: ModelError.self) { try snap.place(forNew: revision, named: name) }
    for good: ByteString in ["42", "x1"] {
      let place = try #require(try snap.place(forNew: revision, named: good))
      #expect(place.path == snap.root.appending("editor").appending(good))
    }
  }

  @Test(arguments: hostile + ["D1"])
  func onlyUUIDsNameSimulatorContainers(name: ByteString) throws {
    let phone = try device(.coreSimulator, "phone", making: ["phone/Containers/Data/Application"])
    let data = LogicalContainer.data(LogicalName("com.example"))
    #expect(throws: ModelError.self) { try phone.place(forNew: data, named: name) }
    let place = try #require(try phone.place(forNew: data, named: Self.uuid))
    #expect(place.path == phone.root.appending("Containers/Data/Application").appending(Self.uuid))
    #expect(try #require(try phone.place(forNew: data)).name.isUUID)
  }

  @Test func layoutDirectoryMayBeALink() throws {
    let mac = try device(
      .macOS, "home", making: ["home/Library/Containers", "disk/Group Containers"])
    try Directory.open(path: directory.path("home/Library"))
      .createLink("Group Containers", to: "../../disk/Group Containers")
    let place = try #require(try mac.place(forNew: .group(LogicalName("group.a"))))
    #expect(place.path == Host.resolved(directory.path("disk/Group Containers/group.a")))
  }

  @Test func groupIsNamedByItsDirectoryNotByAWritableFile() throws {
    let disk = try MacOSDisk()
    try disk.group("group.honest", "../LaunchAgents")
    try disk.group("group.other", "group.victim")
    let device = try disk.find()
    #expect(Set(device.logicalPrefixes) == ["groups/group.honest", "groups/group.other"])
    let reasons = device.findings.map(\.reason)
    #expect(reasons.contains { $0.contains("'../LaunchAgents'") && $0.contains("contains a '/'") })
    #expect(reasons.contains { $0.contains("'group.victim'") })
  }

  @Test func rootDoesNotFollowLinksOfOtherUsers() throws {
    let phone = try SimulatorDevice()
    let elsewhere = try TemporaryDirectory()
    try elsewhere.file("moved/Documents/a", "x")
    let place = SimulatorDevice.place(.data, "D1")
    try phone.directory.link(place, to: elsewhere.string + "/moved")
    guard Host.userID == 0 else { return }
    #expect(try phone.find().containers.count == 1)
    let path = ByteString(phone.directory.string + "/" + place)
    try Directory.open(path: path.parent).setOwner(
      user: 1000, group: 1000, of: try #require(path.lastComponent))
    let found = try phone.find()
    #expect(found.containers.isEmpty)
    #expect(found.findings(.foreignLink).map(\.path) == [ByteString(place)])
  }

  /// Root does not write through such a link either.
  @Test func rootCreatesNoContainerThroughLinksOfOtherUsers() throws {
    guard Host.userID == 0 else { return }
    let mac = try device(.macOS, "home", making: ["home/Library/Containers", "elsewhere"])
    let library = try Directory.open(path: directory.path("home/Library"))
    try library.createLink("Group Containers", to: directory.path("elsewhere"))
    let group = LogicalContainer.group(LogicalName("group.a"))
    #expect(try mac.place(forNew: group)?.parent == Host.realPath(directory.path("elsewhere")))
    try library.setOwner(user: 1000, group: 1000, of: "Group Containers")
    let error = #expect(throws: ModelError.self) { try mac.place(forNew: group) }
    #expect(error?.description.contains("a link of user 1000") == true)
    #expect(!mac.containerDirectories.contains(directory.path("elsewhere")))
    #expect(mac.containerDirectories.count == 2)
  }
}
