import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceDiscovery

/// The locations of new containers: always inside the layout's own directories, whatever name an
/// app, a snapshot or a package gives them.
struct ContainerLocationTests {
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
      let error = #expect(throws: ModelError.self) { try mac.location(forNew: container) }
      #expect(error?.code == .containerName)
    }
    let flatpak = try device(.flatpak, "home/.var/app", making: ["home/.var/app/org.a.A"])
    #expect(throws: ModelError.self) { try flatpak.location(forNew: .data(hostile)) }
    #expect(throws: ModelError.self) { try flatpak.location(forNew: .settings(hostile)) }
  }

  @Test(arguments: hostile + ["latest", "1x", "x"])
  func onlyRevisionsNameSnapDirectories(name: ByteString) throws {
    let snap = try device(.snap, "home/snap", making: ["home/snap/editor/common"])
    let revision = LogicalContainer.revision(LogicalName("editor"))
    #expect(throws: ModelError.self) { try snap.location(forNew: revision, named: name) }
    for good: ByteString in ["42", "x1"] {
      let location = try #require(try snap.location(forNew: revision, named: good))
      #expect(location.path == snap.root.appending("editor").appending(good))
    }
  }

  @Test(arguments: hostile + ["D1"])
  func onlyUUIDsNameSimulatorContainers(name: ByteString) throws {
    let phone = try device(.coreSimulator, "phone", making: ["phone/Containers/Data/Application"])
    let data = LogicalContainer.data(LogicalName("com.example"))
    #expect(throws: ModelError.self) { try phone.location(forNew: data, named: name) }
    let location = try #require(try phone.location(forNew: data, named: Self.uuid))
    #expect(
      location.path == phone.root.appending("Containers/Data/Application").appending(Self.uuid))
    #expect(try #require(try phone.location(forNew: data)).name.isUUID)
  }

  @Test func layoutDirectoryMayBeALink() throws {
    let mac = try device(
      .macOS, "home", making: ["home/Library/Containers", "disk/Group Containers"])
    try Directory.open(path: directory.path("home/Library"))
      .createLink("Group Containers", to: "../../disk/Group Containers")
    let location = try #require(try mac.location(forNew: .group(LogicalName("group.a"))))
    #expect(location.path == Host.resolved(directory.path("disk/Group Containers/group.a")))
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
    let location = SimulatorDevice.path(.data, "D1")
    try phone.directory.link(location, to: elsewhere.string + "/moved")
    guard Host.userID == 0 else { return }
    #expect(try phone.find().containers.count == 1)
    let path = ByteString(phone.directory.string + "/" + location)
    try Directory.open(path: path.parent).setOwner(
      user: 1000, group: 1000, of: try #require(path.lastComponent))
    let found = try phone.find()
    #expect(found.containers.isEmpty)
    #expect(found.findings(.foreignLink).map(\.path) == [ByteString(location)])
  }

  /// Discovery does not enter the directories of a layout in a home directory through such links.
  @Test(arguments: [Layout.flatpak, .snap]) func rootFindsNoDeviceThroughLinksOfOtherUsers(
    layout: Layout
  ) throws {
    guard Host.userID == 0 else { return }
    let name: ByteString = layout == .flatpak ? ".var/app" : "snap"
    for path in ["elsewhere/org.a.A/data/x", "elsewhere/editor/common/x", "home/.var/x"] {
      try directory.file(path, "x")
    }
    try directory.link("elsewhere/editor/current", to: "1")
    let home = try Directory.open(path: directory.path("home"))
    let above = layout == .flatpak ? try home.directory(".var") : home
    let last = try #require(name.lastComponent)
    try above.createLink(last, to: directory.path("elsewhere"))
    let finder = DeviceFinder(layout: layout, machineID: "m", systemFlatpak: nil)
    let elsewhere = try Host.realPath(directory.path("elsewhere"))
    #expect(try finder.find(directory.path("home")).root == elsewhere)
    #expect(try finder.candidates(in: directory.path("home")).map(\.root) == [elsewhere])
    try above.setOwner(user: 1000, group: 1000, of: last)
    let link = try Host.realPath(directory.path("home")).appending(name)
    let error = #expect(throws: ModelError.self) { try finder.find(directory.path("home")) }
    #expect(error?.code == .noDevice)
    #expect(error?.description.contains("'\(link)' is a link of user 1000") == true)
    // It is listed, so that a backup of all devices reports it.
    #expect(try finder.candidates(in: directory.path("home")).map(\.root) == [link])
    // This also applies to a link of root that points to such a link.
    try above.rename(last, to: "theirs", in: above)
    try above.createLink(last, to: "theirs")
    #expect(throws: ModelError.self) { try finder.find(directory.path("home")) }
  }

  @Test func ownLinksToFlatpakSettingsAreFollowed() throws {
    try makeLinkedSettings()
    let found = try DeviceFinder(layout: .flatpak, machineID: "m", systemFlatpak: nil)
      .find(directory.path("home"))
    let settings = try #require(found.containers.first { $0.kind == .settings })
    // The scan opens this path, which must not contain the link.
    let real = try Host.realPath(directory.path("disk/share/flatpak/overrides"))
    #expect(settings.absolutePath == real)
    _ = try Directory.open(resolved: settings.absolutePath)
    #expect(found.findings.isEmpty)
  }

  @Test func rootReadsNoFlatpakSettingsThroughLinksOfOtherUsers() throws {
    guard Host.userID == 0 else { return }
    try makeLinkedSettings()
    let home = try Directory.open(path: directory.path("home"))
    try home.setOwner(user: 1000, group: 1000, of: ".local")
    let found = try DeviceFinder(layout: .flatpak, machineID: "m", systemFlatpak: nil)
      .find(directory.path("home"))
    #expect(!found.containers.contains { $0.kind == .settings })
    let overrides = try Host.realPath(directory.path("home"))
      .appending(".local/share/flatpak/overrides")
    #expect(found.findings(.foreignLink).map(\.path).contains(overrides))
  }

  private func makeLinkedSettings() throws {
    try directory.file("home/.var/app/org.a.A/data/x", "x")
    try directory.file("disk/share/flatpak/overrides/org.a.A", "[Context]\n")
    try directory.link("home/.local", to: "../disk")
  }

  /// Root does not write through such a link either.
  @Test func rootCreatesNoContainerThroughLinksOfOtherUsers() throws {
    guard Host.userID == 0 else { return }
    let mac = try device(.macOS, "home", making: ["home/Library/Containers", "elsewhere"])
    let library = try Directory.open(path: directory.path("home/Library"))
    try library.createLink("Group Containers", to: directory.path("elsewhere"))
    let group = LogicalContainer.group(LogicalName("group.a"))
    #expect(try mac.location(forNew: group)?.parent == Host.realPath(directory.path("elsewhere")))
    try library.setOwner(user: 1000, group: 1000, of: "Group Containers")
    let error = #expect(throws: ModelError.self) { try mac.location(forNew: group) }
    #expect(error?.description.contains("a link of user 1000") == true)
    #expect(!mac.containerDirectories.contains(directory.path("elsewhere")))
    #expect(mac.containerDirectories.count == 2)
  }

  /// A user may replace a directory with a link at any moment after root has examined it.
  @Test func rootFollowsNoLinkThatIsAddedMeanwhile() throws {
    guard Host.userID == 0 else { return }
    let mac = try device(
      .macOS, "home", making: ["home/Library/Containers", "home/Library/Group Containers"])
    let home = try Host.realPath(directory.path("home"))
    let elsewhere = directory.path("elsewhere")
    _ = try Directory.make(path: elsewhere)
    let library = home.appending("Library")
    let swap: @Sendable (ByteString) -> Void = { path in
      guard path.lastComponent == "Group Containers",
        let opened = try? Directory.open(path: library),
        (try? opened.removeDirectory("Group Containers")) != nil
      else { return }
      try? opened.createLink("Group Containers", to: elsewhere)
      try? opened.setOwner(user: 1000, group: 1000, of: "Group Containers")
    }
    let groups = library.appending("Group Containers")
    let directories = ForeignLink.$didResolve.withValue(swap) { mac.containerDirectories }
    #expect(directories.contains(groups), "\(directories)")
    #expect(!directories.contains { $0.isWithin(elsewhere) }, "\(directories)")
    #expect(throws: SystemError.self) { _ = try Directory.open(resolved: groups) }
    // The same for a container to create.
    try Directory.open(path: library).remove("Group Containers")
    try Directory.open(path: library).createDirectory("Group Containers", permissions: 0o755)
    let location = try ForeignLink.$didResolve.withValue(swap) {
      try mac.location(forNew: .group(LogicalName("group.a")))
    }
    #expect(location?.path == groups.appending("group.a"))
    #expect(throws: SystemError.self) { _ = try Directory.make(resolved: groups) }
    #expect(try Directory.open(path: elsewhere).names().isEmpty)
  }
}
