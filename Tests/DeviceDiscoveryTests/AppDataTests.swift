import Codecs
import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// `.xcappdata` bundles: the data container of one app.
struct AppDataTests {
  private let directory: TemporaryDirectory
  private static let uuid = "0E1F2A3B-0000-4000-8000-000000000001"

  init() throws {
    directory = try TemporaryDirectory("appdata")
    try directory.file("a.xcappdata/AppData/Documents/note", "x")
  }

  private func info(_ members: [(String, PropertyList)]) throws {
    try directory.propertyList("a.xcappdata/AppDataInfo.plist", .of(members))
  }

  private func metadata(_ identifier: String) throws {
    try directory.propertyList(
      "a.xcappdata/AppData/.com.apple.mobile_container_manager.metadata.plist",
      .of([
        ("MCMMetadataIdentifier", .string(identifier)), ("MCMMetadataContentClass", .integer(2)),
        ("MCMMetadataUUID", .string(Self.uuid)),
      ]))
  }

  private func find() throws -> Device { try Device.find(root: directory.path("a.xcappdata")) }

  @Test func theListNamesTheAppAndItsVersion() throws {
    try info([
      ("CFBundleIdentifier", .string("com.example.a")), ("XCExecutableVersion", .string("1.5")),
    ])
    let device = try find()
    #expect(device.layout == .coreSimulator)
    #expect(device.logicalPrefixes == ["apps/com.example.a/data"])
    #expect(device.containers.map(\.path) == ["AppData"])
    #expect(device.apps.map(\.version) == ["1.5"])
    #expect(device.apps.map(\.isInstalled) == [false])
    #expect(device.findings.isEmpty)
  }

  @Test func withoutAListTheContainerIdentifiesItself() throws {
    try metadata("com.example.b")
    #expect(try find().logicalPrefixes == ["apps/com.example.b/data"])
    try directory.directory.directory("a.xcappdata").directory("AppData").remove(
      ".com.apple.mobile_container_manager.metadata.plist")
    try directory.file("a.xcappdata/AppData/Library/Preferences/com.example.c.plist", "x")
    #expect(try find().logicalPrefixes == ["apps/com.example.c/data"])
  }

  @Test func theListTakesPrecedence() throws {
    try info([("CFBundleIdentifier", .string("com.example.a"))])
    try metadata("com.example.b")
    let device = try find()
    #expect(device.logicalPrefixes == ["apps/com.example.a/data"])
    #expect(device.findings(.contradiction).map(\.path) == ["AppData"])
    // Links in the data refer to the container by this path.
    #expect(device.containers.map(\.uuid) == [ByteString(Self.uuid)])
  }

  /// Property lists of other programs may lack the identifier, or have another type.
  @Test(arguments: ["<plist><dict><key>Version</key><integer>1</integer></dict></plist>", "", "x"])
  func anUnusableListIsReported(_ text: String) throws {
    try directory.file("a.xcappdata/AppDataInfo.plist", text)
    try metadata("com.example.b")
    let device = try find()
    #expect(device.logicalPrefixes == ["apps/com.example.b/data"])
    #expect(!device.findings.isEmpty)
  }

  @Test func nothingCanBeCreatedInABundle() throws {
    try info([("CFBundleIdentifier", .string("com.example.a"))])
    let device = try find()
    for container: LogicalContainer in [
      .group(LogicalName("group.a")), .bundle(LogicalName("com.example.a")),
      .data(LogicalName("com.example.b")),
    ] {
      #expect(try device.location(forNew: container) == nil, "\(container)")
    }
  }

  /// A directory `AppData` without the property list has another purpose.
  @Test func anotherDirectoryIsNotABundle() throws {
    try directory.file("other/AppData/Roaming/x", "x")
    #expect(throws: ModelError.self) { try Device.find(root: directory.path("other")) }
    try directory.propertyList(
      "other/AppDataInfo.plist", .of([("CFBundleIdentifier", .string("com.example.a"))]))
    #expect(
      try Device.find(root: directory.path("other")).logicalPrefixes == ["apps/com.example.a/data"])
  }
}
