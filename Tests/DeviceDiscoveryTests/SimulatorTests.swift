import Codecs
import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

struct SimulatorTests {
  private func sample() throws -> SimulatorDevice {
    let device = try SimulatorDevice()
    let bundle = try device.bundle(
      "B1", "com.example.notes", name: "Notes",
      more: [("CFBundleDisplayName", .string("My Notes"))])
    try device.info(
      bundle + "/PlugIns/Share.appex", "com.example.notes.share", name: "Share")
    try device.info(
      bundle + "/Extensions/Widget.appex", "com.example.other-name", name: "Widget")
    try device.container(.data, "D1", "com.example.notes")
    try device.container(.data, "D2", "com.example.gone")
    try device.container(.extension, "E1", "com.example.notes.share")
    try device.container(.extension, "E2", "com.example.other-name")
    try device.container(.extension, "E3", "com.example.gone.sync.more")
    try device.container(.extension, "E4", "org.nobody.ext")
    try device.container(.group, "G1", "group.com.example.notes")
    try device.container(.data, "D3", nil)
    try device.directory.makeDirectory("data/Containers/Shared/SystemGroup/S1")
    try device.directory.makeDirectory("data/Containers/Data/System/S2")
    try device.directory.makeDirectory("data/Containers/Data/System/S3")
    return device
  }

  @Test func findsAppsAndContainers() throws {
    let sample = try sample()
    let device = try sample.find()
    #expect(device.layout == .coreSimulator)
    #expect(device.platform == "iOS")
    #expect(device.osVersion == "16.4")
    #expect(device.name == "iPhone 14")
    #expect(device.identity == .udid(SimulatorDevice.udid))
    #expect(device.root == sample.directory.path)
    #expect(
      device.logicalPrefixes == [
        "apps/com.example.gone/data",
        "apps/com.example.gone/extensions/com.example.gone.sync.more/data",
        "apps/com.example.notes/bundle", "apps/com.example.notes/data",
        "apps/com.example.notes/extensions/com.example.notes.share/data",
        "apps/com.example.notes/extensions/com.example.other-name/data",
        "apps/org.nobody.ext/extensions/org.nobody.ext/data", "apps/~D3/data",
        "groups/group.com.example.notes",
      ])
    #expect(device.apps.map(\.identifier.bytes) == ["com.example.gone", "com.example.notes"])
    #expect(
      device.systemContainers.map { "\($0.path) \($0.count)" } == [
        "data/Containers/Data/System 2", "data/Containers/Shared/SystemGroup 1",
      ])
    #expect(device.findings.map(\.code) == [.unidentified])
  }

  @Test func knownGroupsAreNotGuessed() throws {
    let device = try sample().find()
    let group: ByteString = "group.com.example.notes"
    func groups(_ app: ByteString, _ members: Set<ByteString>) throws -> [String] {
      try device.stating(members: [group: members]).app(app).groups
        .map { "\($0.group.bytes) \($0.basis)" }
    }
    #expect(try device.app("com.example.notes").groups.map(\.basis) == [.guessed])
    #expect(try groups("com.example.notes", ["com.example.notes"]) == ["\(group) stated"])
    #expect(try groups("com.example.notes", ["com.example.gone"]) == [])
    #expect(try groups("com.example.gone", ["com.example.gone"]) == ["\(group) stated"])
    let other = device.stating(members: ["group.other": ["com.example.gone"]])
    #expect(try other.app("com.example.notes").groups.map(\.basis) == [.guessed])
    #expect(try other.app("com.example.gone").groups.map(\.isKnown) == [true])
    #expect(other.containers == device.containers && other.findings == device.findings)
  }

  @Test func readsTheFactsOfBundles() throws {
    let device = try sample().find()
    let app = try device.app("notes")
    #expect(app.isInstalled)
    #expect(app.displayName == "My Notes")
    #expect(app.version == "1.2")
    #expect(app.build == "34")
    #expect(
      app.extensions.map(\.path) == [
        "Notes.app/PlugIns/Share.appex", "Notes.app/Extensions/Widget.appex",
      ])
    #expect(
      app.groups == [
        App.GroupMembership(
          group: try #require(BundleIdentifier("group.com.example.notes")), basis: .guessed)
      ])
    let gone = try device.app("com.example.gone")
    #expect(!gone.isInstalled && gone.version == nil)
    #expect(device.containers(of: app).count == 4)
    #expect(device.containers(of: gone).map(\.kind) == [.data, .extension])
    #expect(
      device.containersWithoutApp.map(\.logicalPrefix)
        == ["apps/org.nobody.ext/extensions/org.nobody.ext/data", "apps/~D3/data"])
    let group = try #require(device.containers.first { $0.kind == .group })
    #expect(device.members(of: group).map(\.app) == [app])
    #expect(device.groups(of: app).map(\.container) == [group])
  }

  @Test func readsLocationsAndUUIDs() throws {
    let sample = try sample()
    let container = try #require(
      try sample.find().container(at: SimulatorDevice.path(.data, "D1")))
    #expect(container.uuid == "D1")
    #expect(container.absolutePath == sample.directory.path.appending(container.path))
    #expect(container.identification == .metadata)
    let bundle = try #require(
      try sample.find().container(at: SimulatorDevice.path(.bundle, "B1")))
    #expect(bundle.bundleDirectory == "Notes.app")
    #expect(bundle.identification == .infoPlist)
  }

  @Test func findsTheSameFromTheDataDirectory() throws {
    let sample = try sample()
    let whole = try sample.find()
    let device = try Device.find(root: ByteString(sample.directory.string + "/data"))
    #expect(device.layout == .coreSimulator)
    #expect(device.identity == whole.identity)
    #expect(device.osVersion == "16.4")
    #expect(device.logicalPrefixes == whole.logicalPrefixes)
    #expect(device.apps == whole.apps)
  }

  @Test func fallsBackToPreferences() throws {
    let device = try SimulatorDevice()
    try device.bundle("B1", "com.example.notes", name: "Notes")
    let files = [
      (ContainerKind.data, "D1", ["com.example.notes", "com.google.measurement"]),
      (.data, "D2", ["com.apple.EmojiCache", "org.else.app", "org.else.app.suite"]),
      (.data, "D3", ["org.one.app", "org.two.app"]),
      (.data, "D4", ["com.apple.only"]), (.data, "D5", ["group.com.example"]),
      (.group, "G1", ["group.com.example", "com.example.notes"]),
      (.extension, "E1", ["com.example.notes.share"]),
    ]
    for (kind, uuid, names) in files {
      try device.container(kind, uuid, nil)
      for name in names {
        try device.directory.file(
          SimulatorDevice.path(kind, uuid) + "/Library/Preferences/\(name).plist")
      }
    }
    let found = try device.find()
    #expect(
      found.logicalPrefixes == [
        "apps/com.apple.only/data", "apps/com.example.notes/bundle", "apps/com.example.notes/data",
        "apps/com.example.notes/extensions/com.example.notes.share/data", "apps/org.else.app/data",
        "apps/~D3/data", "apps/~D5/data", "groups/group.com.example",
      ])
    #expect(found.containers.filter { $0.identification == .preferences }.count == 5)
    #expect(found.findings(.unidentified).map(\.path).count == 2)
  }

  @Test func mapsPathsBothWays() throws {
    let sample = try sample()
    let device = try sample.find()
    let real = ByteString(
      sample.directory.string + "/" + SimulatorDevice.path(.data, "D1") + "/Documents/a\nb")
    let logical = try #require(try device.logicalPath(ofPath: real))
    #expect(logical.bytes == "apps/com.example.notes/data/Documents/a\nb")
    #expect(try device.realPath(of: logical) == real)
    #expect(try device.logicalPath(ofPath: real.concatenating("/")) == logical)
    let data = sample.directory.path.appending(ByteString(SimulatorDevice.path(.data, "D1")))
    #expect(
      try device.logicalPath(ofPath: data.concatenating("//"))?.bytes
        == "apps/com.example.notes/data")
    #expect(try device.logicalPath(ofPath: sample.directory.path) == nil)
    #expect(try device.logicalPath(ofPath: "/etc/passwd") == nil)
    for container in device.containers {
      let path = try LogicalPath(container.logical, ByteString([0xff, 0x2f, 0x41]))
      #expect(try device.resolve(path).container == container)
      #expect(try device.logicalPath(ofPath: device.realPath(of: path)) == path)
    }
    let error = #expect(throws: ModelError.self) {
      try device.realPath(of: LogicalPath("apps/com.example.none/data/x"))
    }
    #expect(error?.code == .logicalPath)
    #expect(throws: ModelError.self) { try device.realPath(of: LogicalPath("apps")) }
    #expect(throws: ModelError.self) {
      try device.logicalPath(ofPath: real.appending("../../secret"))
    }
  }

  @Test func appsAreSelectedByTheirNames() throws {
    let device = try SimulatorDevice()
    try device.bundle("B1", "com.example.notes", name: "Alpha")
    try device.bundle("B2", "org.else.Notes", name: "Beta")
    try device.bundle("B3", "org.else.mail", name: "Über Post")
    let found = try device.find()
    #expect(try found.app("com.example.notes").displayName == "Alpha")
    #expect(try found.app("MAIL").identifier.bytes == "org.else.mail")
    #expect(try found.app("über post").identifier.bytes == "org.else.mail")
    #expect(try found.app("beta").identifier.bytes == "org.else.Notes")
    let ambiguous = #expect(throws: ModelError.self) { try found.app("notes") }
    #expect(ambiguous?.code == .ambiguousApp)
    #expect(ambiguous?.reason.contains("com.example.notes, org.else.Notes") == true)
    let missing = #expect(throws: ModelError.self) { try found.app("nothing") }
    #expect(missing?.code == .noApp)
    #expect(missing?.hint != nil)
  }
}
