import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceDiscovery

/// The data of apps on an Android device.
struct AndroidTests {
  private let disk: TemporaryDirectory

  init() throws {
    disk = try TemporaryDirectory("android")
    for name in ["files/notes", "cache/x", "code_cache/y", "databases/a.db", "shared_prefs/s.xml"] {
      try disk.file("data/data/com.example.notes/\(name)", "x")
    }
    try disk.makeDirectory("data/data/com.example.empty")
  }

  private func find(_ path: ByteString = "", _ layout: Layout? = nil) throws -> Device {
    try DeviceFinder(layout: layout, machineID: "m", systemFlatpak: nil).find(disk.path(path))
  }

  @Test func eachPackageIsAnApp() throws {
    for path: ByteString in ["", "data", "data/data"] {
      let device = try find(path)
      #expect(device.layout == .android)
      #expect(device.root == disk.path("data/data"))
      #expect(device.platform == "Android")
      #expect(
        device.logicalPrefixes == ["apps/com.example.empty/data", "apps/com.example.notes/data"])
      #expect(device.apps.allSatisfy { $0.isInstalled })
      #expect(device.findings.isEmpty)
    }
  }

  @Test func installedPackagesAreRead() throws {
    try disk.file(
      "data/system/packages.list",
      "com.example.notes 10045 0 /data/user/0/com.example.notes default 3003 0 42 1 @null\n"
        + "com.example.only 10046 0 /data/user/0/com.example.only default none\n"
        + "../escape 1 0 /x y z 0 1\nshort\n\n")
    let apps = try find().apps
    #expect(
      apps.map(\.identifier.bytes) == [
        "com.example.empty", "com.example.notes", "com.example.only",
      ])
    #expect(apps.map(\.isInstalled) == [false, true, true])
    #expect(apps.map(\.build) == [nil, "42", nil])
    #expect(try find().app("notes").identifier.bytes == "com.example.notes")
  }

  @Test func hostilePackageListsAreBounded() throws {
    let longLine = Array(repeating: UInt8(ascii: " "), count: 500_000)
    for bytes in [[], longLine, [0, 1, 2, 255], Array("a b c d e f g notANumber".utf8)] {
      #expect(AndroidFinder.packages(in: bytes).allSatisfy { $0.versionCode == nil })
    }
    try disk.sparse("data/system/packages.list", size: 2 << 20)
    let device = try find()
    #expect(device.findings(.unusableFile).count == 1)
    #expect(device.apps.allSatisfy { $0.isInstalled })
  }

  @Test func otherDataIsReported() throws {
    try disk.makeDirectory("data/user_de/0/com.example.notes")
    try disk.makeDirectory("data/media/0/DCIM")
    try disk.makeDirectory("data/user/10/com.example.notes")
    try disk.link("data/user/0", to: "/data/data")
    let paths = try find().findings(.unsupported).map { $0.path.lastComponent }
    #expect(paths == ["media", "10", "user_de"])
  }

  @Test func detectionNeedsThePackagesOwnDirectories() throws {
    let other = try TemporaryDirectory()
    try other.file("data/data/com.example/x", "x")
    try other.file("data/data/plain/cache/x", "x")
    let finder = DeviceFinder(machineID: "m", systemFlatpak: nil)
    #expect(throws: ModelError.self) { try finder.find(other.path) }
    let asked = DeviceFinder(layout: .android, machineID: "m", systemFlatpak: nil)
    #expect(try asked.find(other.path).apps.count == 2)
    #expect(try asked.find(other.path("data/data")).apps.count == 2)
    let error = #expect(throws: ModelError.self) { try asked.find(other.path("data/data/plain")) }
    #expect(error?.description.contains("'data/data'") == true)
    #expect(try finder.candidates(in: disk.path).map(\.root) == [disk.path("data/data")])
  }

  @Test func newContainersAreBesideTheOthers() throws {
    let device = try find()
    let location = try device.location(forNew: .data(LogicalName("com.example.new")))
    #expect(location?.path == disk.path("data/data/com.example.new"))
    for hostile: ByteString in ["..", "a/b", ".sandboxctl", ""] {
      #expect(throws: ModelError.self) { try device.location(forNew: .data(LogicalName(hostile))) }
    }
    #expect(try device.location(forNew: .group(LogicalName("x"))) == nil)
  }
}
