import Codecs
import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A macOS disk in a temporary directory: `Users/you` with containers, and `Applications`.
struct MacOSDisk {
  let directory: TemporaryDirectory
  static let home = "Users/you"
  static let metadataName = ".com.apple.containermanagerd.metadata.plist"

  init() throws {
    directory = try TemporaryDirectory("macos")
    try directory.makeDirectory(Self.home + "/Library/Containers")
  }

  func metadata(_ location: String, _ identifier: ByteString, contentClass: Int64 = 2) throws {
    try directory.propertyList(
      location + "/" + Self.metadataName,
      .of([
        ("MCMMetadataIdentifier", .name(identifier)),
        ("MCMMetadataUUID", .string("META")),
        ("MCMMetadataContentClass", .integer(contentClass)),
      ]), isBinary: true)
  }

  /// Makes an app's container with a document; its metadata names `identifier` unless that is nil.
  func container(_ name: String, _ identifier: ByteString? = nil) throws {
    let location = Self.home + "/Library/Containers/" + name
    try directory.file(location + "/Data/Documents/letter", name)
    if let identifier { try metadata(location, identifier) }
  }

  func group(_ name: String, _ identifier: ByteString? = nil) throws {
    let location = Self.home + "/Library/Group Containers/" + name
    try directory.file(location + "/shared.db", name)
    if let identifier { try metadata(location, identifier, contentClass: 7) }
  }

  /// Makes a bundle in a directory of apps and returns the path of its `Contents`.
  @discardableResult
  func bundle(
    _ name: String, _ identifier: ByteString, in base: String = "Applications",
    groups: [String]? = nil
  ) throws -> String {
    let contents = "\(base)/\(name)/Contents"
    try directory.propertyList(
      contents + "/Info.plist",
      .of([
        ("CFBundleIdentifier", .name(identifier)), ("CFBundleName", .string("The App")),
        ("CFBundleShortVersionString", .string("2.1")), ("CFBundleVersion", .string("210")),
        ("CFBundleExecutable", .string("Program")),
      ]))
    if let groups {
      let program = MachOBuilder(signature: MachOBuilder.entitlements(groups))
      try directory.file(contents + "/MacOS/Program", program.universal(is64: false))
    }
    return contents
  }

  func find(_ path: String = home, layout: Layout? = nil) throws -> Device {
    try DeviceFinder(layout: layout, machineID: "m", systemFlatpak: nil)
      .find(directory.path(ByteString(path)))
  }
}

struct MacOSTests {
  /// Some builds write versions as numbers instead of strings.
  @Test func versionMayBeANumber() throws {
    let disk = try MacOSDisk()
    try disk.directory.propertyList(
      "Applications/N.app/Contents/Info.plist",
      .of([
        ("CFBundleIdentifier", .string("com.example.n")),
        ("CFBundleShortVersionString", .real(2.5)), ("CFBundleVersion", .integer(210)),
      ]))
    try disk.container("com.example.n", "com.example.n")
    let app = try #require(
      try disk.find().apps.first { $0.identifier == BundleIdentifier("com.example.n") })
    #expect(app.version == "2.5" && app.build == "210")
  }

  private func disk() throws -> MacOSDisk {
    let disk = try MacOSDisk()
    try disk.container("com.example.notes", "com.example.notes")
    try disk.container("com.example.notes.share", "com.example.notes.share")
    try disk.container("0B3F1D2E-0001-4A5B-8C9D-000000000001", "com.example.uuid")
    try disk.container("com.example.bare")
    try disk.group("group.com.example", "group.com.example")
    try disk.group("ABCDE12345.com.example.team")
    let contents = try disk.bundle(
      "Notes.app", "com.example.notes", groups: ["group.com.example"])
    try disk.bundle("Share.appex", "com.example.notes.share", in: contents + "/PlugIns")
    try disk.bundle("Bare.app", "com.example.bare", in: MacOSDisk.home + "/Applications")
    try disk.bundle("Unsandboxed.app", "com.example.free")
    try disk.directory.propertyList(
      "System/Library/CoreServices/SystemVersion.plist",
      .of([("ProductName", .string("macOS")), ("ProductVersion", .string("14.5"))]))
    return disk
  }

  @Test func findsContainersGroupsAndTheirBundles() throws {
    let disk = try disk()
    let device = try disk.find()
    #expect(device.layout == .macOS)
    #expect(device.root == disk.directory.path("Users/you"))
    #expect(device.platform == "macOS" && device.osVersion == "14.5")
    #expect(
      device.logicalPrefixes == [
        "apps/com.example.bare/bundle", "apps/com.example.bare/data",
        "apps/com.example.notes/bundle", "apps/com.example.notes/data",
        "apps/com.example.notes/extensions/com.example.notes.share/data",
        "apps/com.example.uuid/data", "groups/ABCDE12345.com.example.team",
        "groups/group.com.example",
      ])
    let notes = try device.app("com.example.notes")
    #expect(notes.isInstalled && notes.version == "2.1" && notes.build == "210")
    #expect(notes.displayName == "The App")
    #expect(notes.extensions.map(\.path) == ["Notes.app/Contents/PlugIns/Share.appex"])
    #expect(notes.groups.map(\.group.bytes) == ["group.com.example"])
    #expect(notes.groups.first?.basis == .known(.signature))
    #expect(try !device.app("com.example.uuid").isInstalled)
    #expect(device.apps.count == 3)
    #expect(device.findings.isEmpty)
  }

  @Test func reportsTheSourceOfEachIdentity() throws {
    let device = try disk().find()
    let said = Dictionary(
      uniqueKeysWithValues: device.containers.map { ($0.logicalPrefix, $0.identification) })
    #expect(said["apps/com.example.notes/data"] == .metadata)
    #expect(said["apps/com.example.bare/data"] == .layout)
    #expect(said["apps/com.example.notes/bundle"] == .infoPlist)
    #expect(said["groups/ABCDE12345.com.example.team"] == .layout)
    let uuids = device.containers.compactMap(\.uuid)
    #expect(uuids == ["0B3F1D2E-0001-4A5B-8C9D-000000000001"])
  }

  @Test func pathsMapBothWays() throws {
    let disk = try disk()
    let device = try disk.find()
    let locations = [
      (
        "Users/you/Library/Containers/com.example.notes/Data/Documents/letter",
        "apps/com.example.notes/data/Documents/letter"
      ),
      (
        "Users/you/Library/Group Containers/group.com.example/shared.db",
        "groups/group.com.example/shared.db"
      ),
      (
        "Users/you/Applications/Bare.app/Contents/Info.plist",
        "apps/com.example.bare/bundle/Bare.app/Contents/Info.plist"
      ),
      ("Applications/Notes.app", "apps/com.example.notes/bundle/Notes.app"),
    ]
    for (real, logical) in locations {
      let path = disk.directory.path(ByteString(real))
      #expect(try device.logicalPath(ofPath: path)?.bytes == ByteString(logical))
      #expect(try device.realPath(of: LogicalPath(ByteString(logical))) == path)
    }
    // Entries next to the data, and another app's bundle, belong to no container.
    for path in [
      "Users/you/Library/Containers/com.example.notes/" + MacOSDisk.metadataName,
      "Applications/Unsandboxed.app/Contents/Info.plist", "Users/you/Documents",
    ] {
      #expect(try device.logicalPath(ofPath: disk.directory.path(ByteString(path))) == nil)
    }
    #expect(throws: ModelError.self) {
      try device.realPath(of: LogicalPath("apps/com.example.notes/bundle/Unsandboxed.app"))
    }
  }

  @Test func isFoundByDetectionAndByName() throws {
    let disk = try disk()
    for path in ["Users/you", "Users/you/Library/Containers"] {
      let device = try disk.find(path)
      #expect(device.layout == .macOS)
      #expect(device.root == disk.directory.path("Users/you"))
    }
    #expect(try disk.find(layout: .macOS).containers.count == 8)
    let refused = #expect(throws: ModelError.self) { try disk.find("Users", layout: .macOS) }
    #expect(refused?.reason.contains("'Library/Containers'") == true)
    let groups = try MacOSDisk()
    try groups.group("group.com.example")
    try groups.directory.directory.removeTree("Users/you/Library/Containers")
    #expect(try groups.find().logicalPrefixes == ["groups/group.com.example"])
  }

  @Test func homeElsewhereHasNoSystem() throws {
    let disk = try disk()
    try disk.directory.directory.rename("Users/you", to: "copy", in: disk.directory.directory)
    let device = try disk.find("copy")
    #expect(device.osVersion == nil)
    #expect(device.containers.filter { $0.kind == .bundle }.map(\.member) == ["Bare.app"])
    // Without its bundle the extension is a separate app.
    #expect(device.logicalPrefixes.contains("apps/com.example.notes.share/data"))
  }

  @Test func oddContainersAreReported() throws {
    let disk = try MacOSDisk()
    try disk.container("com.example.a", "com.example.other")
    try disk.container("0B3F1D2E-0001-4A5B-8C9D-000000000001")
    try disk.directory.file(MacOSDisk.home + "/Library/Containers/com.example.empty/x", "x")
    try disk.directory.file(MacOSDisk.home + "/Library/Containers/.DS_Store", "x")
    try disk.directory.file(MacOSDisk.home + "/Library/Containers/com.example.damaged/Data/x", "x")
    try disk.directory.file(
      MacOSDisk.home + "/Library/Containers/com.example.damaged/" + MacOSDisk.metadataName, "no")
    let big = disk.directory.string + "/big"
    try disk.directory.file("big/Documents/x", "x")
    try disk.directory.link(
      MacOSDisk.home + "/Library/Containers/com.example.linked/Data", to: big)
    try disk.directory.link(
      MacOSDisk.home + "/Library/Containers/com.example.lost/Data", to: "/nowhere")
    let device = try disk.find()
    #expect(
      device.logicalPrefixes == [
        "apps/com.example.damaged/data", "apps/com.example.linked/data",
        "apps/com.example.other/data", "apps/~0B3F1D2E-0001-4A5B-8C9D-000000000001/data",
      ])
    let codes = Set(device.findings.map(\.code))
    #expect(
      codes == [
        .contradiction, .unidentified, .orphan, .unusableFile, .linkFollowed, .danglingLink,
      ])
    #expect(
      device.findings(.orphan).map(\.path) == [
        "Library/Containers/com.example.empty", "Library/Containers/com.example.lost",
      ])
  }
}
