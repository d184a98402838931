import Codecs
import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

struct DeviceFinderTests {
  @Test func plainDirectoryIsADeviceOnlyOnRequest() throws {
    let directory = try TemporaryDirectory()
    try directory.file("a/b", "x")
    let error = #expect(throws: ModelError.self) { try Device.find(root: directory.path) }
    #expect(error?.code == .noDevice)
    #expect(error?.hint?.contains("--layout folder") == true)
    let device = try Device.find(root: directory.path, layout: .folder)
    let name = try #require(directory.path.lastComponent)
    #expect(device.logicalPrefixes == [ByteString("folders/\(name)")])
    #expect(device.containers[0].absolutePath == directory.path)
    let logical = try #require(try device.logicalPath(ofPath: directory.path.appending("a/b")))
    #expect(logical.location?.inner == "a/b")
    #expect(try device.realPath(of: logical) == directory.path.appending("a/b"))
  }

  @Test func missingRootOrFileIsRefused() throws {
    let directory = try TemporaryDirectory()
    try directory.file("file", "x")
    let missing = #expect(throws: ModelError.self) {
      try Device.find(root: directory.path.appending("none"))
    }
    #expect(missing?.description.contains("no such file or directory") == true)
    let file = #expect(throws: ModelError.self) {
      try Device.find(root: directory.path.appending("file"), layout: .folder)
    }
    #expect(file?.reason == "not a directory")
  }

  @Test(arguments: [(Layout.coreSimulator, "device.plist"), (.flatpak, "'.var/app'")])
  func otherLayoutThanRequestedIsRefused(layout: Layout, reason: String) throws {
    let directory = try TemporaryDirectory()
    try directory.file("Documents/letter", "x")
    let error = #expect(throws: ModelError.self) {
      try Device.find(root: directory.path, layout: layout)
    }
    #expect(error?.code == .noDevice)
    #expect(error?.reason.contains(reason) == true)
    #expect(error?.hint != nil)
  }

  @Test func rootMayBeALink() throws {
    let device = try SimulatorDevice()
    try device.container(.data, "D1", "com.example.a")
    let other = try TemporaryDirectory()
    try other.link("link", to: device.directory.string)
    let found = try Device.find(root: ByteString(other.string + "/link"))
    #expect(found.root == device.directory.path)
    #expect(found.logicalPrefixes == ["apps/com.example.a/data"])
    let named = try DeviceFinder(name: "mine").find(device.directory.path)
    #expect(named.identity.description == "name:mine")
  }

  @Test func versionOfAnIOSFileSystemIsRead() throws {
    let directory = try TemporaryDirectory()
    try directory.propertyList(
      "System/Library/CoreServices/SystemVersion.plist",
      .of([("ProductName", .string("iPhone OS")), ("ProductVersion", .string("14.8.1"))]))
    try directory.makeDirectory("private/var/mobile/Containers/Data/Application/D1")
    try directory.makeDirectory("private/var/mobile/Containers/Data/InternalDaemon/S1")
    try directory.makeDirectory("private/var/containers/Bundle/Application/B1/A.app")
    try directory.makeDirectory("private/var/containers/Shared/SystemGroup/S2")
    try directory.makeDirectory("private/var/mobile/Applications")
    let device = try DeviceFinder(machineID: "m").find(directory.path)
    #expect(device.platform == "iOS")
    #expect(device.osVersion == "14.8.1")
    #expect(device.identity == .location(machine: "m", .coreSimulator, root: directory.path))
    #expect(device.logicalPrefixes == ["apps/~B1/bundle", "apps/~D1/data"])
    #expect(device.systemContainers.map(\.count) == [1, 1])
    #expect(device.findings(.unsupported).count == 1)
  }

  @Test(arguments: [
    "garbage", "<plist><dict><key>runtime</key><string>x.y</string></dict></plist>",
  ])
  func invalidDeviceRecordIsReported(text: String) throws {
    let device = try SimulatorDevice()
    try device.directory.file("device.plist", text)
    try device.container(.data, "D1", "com.example.a")
    let found = try device.find()
    #expect(found.osVersion == nil)
    #expect(found.containers.count == 1)
    #expect(found.findings.count == 1)
    #expect(found.findings[0].path == "device.plist")
  }
}
