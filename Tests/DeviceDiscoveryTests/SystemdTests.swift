import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceDiscovery

/// The directories of units on a system below a temporary directory.
struct SystemdTests {
  private let root: TemporaryDirectory
  private static let vendor = "usr/lib/systemd/system/"
  private static let administrator = "etc/systemd/system/"

  init() throws {
    root = try TemporaryDirectory("system")
    try root.makeDirectory("var/lib")
    try unit("web.service", "StateDirectory=web\nCacheDirectory=web\nLogsDirectory=web/access")
  }

  /// Writes a unit file with settings of its processes.
  private func unit(_ name: String, _ settings: String, in directory: String = vendor) throws {
    try root.file(
      directory + name, "[Unit]\nDescription=The \(name)\n[Service]\n\(settings)\n")
  }

  private func make(_ directories: String...) throws {
    for name in directories { try root.file(name + "/content", "x") }
  }

  private func find(_ layout: Layout? = nil) throws -> Device {
    try DeviceFinder(layout: layout, machineID: "m", systemFlatpak: nil).find(root.path)
  }

  /// A file system that is mounted in a cache may contain files of a server. A base directory may
  /// be a mount point.
  @Test(.enabled(if: (try? Mount.isPermitted()) ?? false))
  func mountsInCachesAreNotEntered() throws {
    try unit("web.service", "StateDirectory=web\nCacheDirectory=web web/deep other all/deep")
    try make(
      "var/lib/web", "var/cache/web/deep", "var/cache/other", "var/cache/all/deep", "disk/caches",
      "disk/files/deep")
    let caches = try Mount(binding: root.path("var/cache"), on: root.path("var/cache"))
    let mounts = try ["var/cache/web", "var/cache/all", "var/lib/web"].map {
      try Mount(binding: root.path("disk/files"), on: root.path(ByteString($0)))
    }
    defer { withExtendedLifetime((caches, mounts)) {} }
    let device = try find(.systemd)
    #expect(device.containers.map(\.path) == ["var/cache/other", "var/lib/web"])
    #expect(
      device.findings(.excluded).map(\.path) == [
        "var/cache/all/deep", "var/cache/web", "var/cache/web/deep",
      ])
  }

  @Test func directoriesOfAllPurposesAreFound() throws {
    try unit("web.service", "RuntimeDirectory=web", in: "run/systemd/system.control/")
    try unit(
      "all.service",
      "StateDirectory=all all/deep other\nConfigurationDirectory=all\nRuntimeDirectory=all")
    try make(
      "var/lib/all", "var/lib/other", "etc/all", "run/all", "run/web", "var/cache/web",
      "var/lib/unrelated")
    let device = try find()
    #expect(device.layout == .systemd)
    #expect(device.root == root.path)
    #expect(
      device.logicalPrefixes == [
        "apps/all.service/directories/config/all", "apps/all.service/directories/runtime/all",
        "apps/all.service/directories/state/all", "apps/all.service/directories/state/other",
        "apps/web.service/directories/runtime/web",
      ])
    #expect(device.containers.map(\.kind) == [.config, .runtime, .state, .state, .runtime])
    #expect(
      device.containers.map(\.path) == [
        "etc/all", "run/all", "var/lib/all", "var/lib/other", "run/web",
      ])
    #expect(device.apps.map(\.identifier.bytes) == ["all.service", "web.service"])
    #expect(device.apps.map(\.displayName) == ["The all.service", "The web.service"])
    #expect(try device.app("all").identifier.bytes == "all.service")
    #expect(device.findings.isEmpty)
    for container in device.containers {
      #expect(try LogicalPath(container.logicalPrefix).location?.container == container.logical)
      let path = container.absolutePath.appending("content")
      let logical = try #require(try device.logicalPath(ofPath: path))
      #expect(try device.realPath(of: logical) == path)
    }
  }

  @Test func unitsWithoutDirectoriesAreNotApps() throws {
    let device = try find()
    #expect(device.apps.isEmpty && device.containers.isEmpty && device.findings.isEmpty)
  }

  @Test func dropInsApplyByName() throws {
    try make("var/lib/web", "var/lib/first", "var/lib/second", "var/cache/web")
    try unit("20-b.conf", "StateDirectory=second", in: Self.administrator + "web.service.d/")
    try unit("10-a.conf", "StateDirectory=\nStateDirectory=first", in: Self.vendor + "service.d/")
    #expect(
      try find().containers.map(\.path) == ["var/cache/web", "var/lib/first", "var/lib/second"])
    // A drop-in of the administrator replaces the one of the same name, and a link removes it.
    try unit("10-a.conf", "", in: Self.administrator + "service.d/")
    #expect(try find().containers.map(\.path).contains("var/lib/web"))
    try root.link("run/systemd/system.control/web.service.d/20-b.conf", to: "/dev/null")
    #expect(try !find().containers.map(\.path).contains("var/lib/second"))
  }

  @Test func theStrongestUnitFileCounts() throws {
    try make("var/lib/web", "var/lib/mine", "var/cache/web")
    try unit("web.service", "StateDirectory=mine", in: Self.administrator)
    #expect(try find().containers.map(\.path) == ["var/lib/mine"])
  }

  /// A masked unit cannot start, but its data remains.
  @Test func maskedAndLinkedUnitsHaveTheirDirectories() throws {
    try make("var/lib/web", "var/lib/far")
    try root.link(Self.administrator + "web.service", to: "/dev/null")
    try root.link(Self.administrator + "alias.service", to: "/usr/lib/systemd/system/web.service")
    try root.file("opt/far.service", "[Service]\nStateDirectory=far\n")
    try root.link(Self.administrator + "far.service", to: "/opt/far.service")
    let device = try find()
    #expect(device.apps.map(\.identifier.bytes) == ["far.service", "web.service"])
    #expect(device.findings.isEmpty)
  }

  @Test func linksOutOfTheSystemAreNotRead() throws {
    let outside = try TemporaryDirectory()
    try outside.file("far.service", "[Service]\nStateDirectory=far\n")
    try make("var/lib/far")
    try root.link("opt", to: outside.string)
    try root.link(Self.administrator + "far.service", to: "/opt/far.service")
    let device = try find()
    #expect(device.apps.isEmpty)
    #expect(device.findings(.unusableFile).count == 1)
  }

  @Test func instancesOfTemplatesAreUnits() throws {
    try unit("db@.service", "StateDirectory=db/%i shared-%p")
    try make("var/lib/db/main", "var/lib/db/unused", "var/lib/shared-db")
    try root.link(
      Self.administrator + "multi-user.target.wants/db@main.service",
      to: "/usr/lib/systemd/system/db@.service")
    let device = try find()
    #expect(
      device.logicalPrefixes == [
        "apps/db@.service/directories/state/shared-db",
        "apps/db@main.service/directories/state/db%2Fmain",
      ])
    #expect(device.findings(.unusableName).map(\.path) == ["db@.service"])
  }

  @Test func sharedDirectoryBelongsToTheUnitOfItsName() throws {
    try unit("a-helper.service", "StateDirectory=web")
    try make("var/lib/web")
    let device = try find()
    #expect(device.logicalPrefixes == ["apps/web.service/directories/state/web"])
    let found = device.findings(.repeatedDirectory)
    #expect(found.map(\.path) == ["var/lib/web"])
    #expect(found.first?.reason.contains("'a-helper.service'") == true)
  }

  @Test func directoryInAnotherIsPartOfIt() throws {
    try unit("inner.service", "StateDirectory=web/inner")
    try make("var/lib/web", "var/lib/web/inner")
    let device = try find()
    #expect(device.logicalPrefixes == ["apps/web.service/directories/state/web"])
    #expect(device.findings(.repeatedDirectory).map(\.path) == ["var/lib/web/inner"])
  }

  @Test func directoriesOfDynamicUsersArePrivate() throws {
    try unit("web.service", "DynamicUser=yes\nStateDirectory=web\nCacheDirectory=web")
    try make("var/lib/private/web", "var/cache/private/web")
    try root.link("var/lib/web", to: "private/web")
    let device = try find()
    #expect(
      device.logicalPrefixes == [
        "apps/web.service/directories/cache/web", "apps/web.service/directories/state/web",
      ])
    #expect(device.containers.map(\.path) == ["var/cache/private/web", "var/lib/web"])
    #expect(device.containers.last?.absolutePath == root.path("var/lib/private/web"))
    #expect(device.findings.map(\.code) == [.linkFollowed])
  }

  /// In the files of another system, a link may point to directories of this one.
  @Test func linksOutOfTheSystemAreNotUsed() throws {
    let outside = try TemporaryDirectory()
    try outside.file("lib/web/x", "x")
    try outside.file("cache/web/x", "x")
    try make("var/log/web/access")
    try root.link("var/lib/web", to: outside.string + "/lib/web")
    try root.link("var/cache", to: outside.string + "/cache")
    let device = try find()
    #expect(device.containers.map(\.kind) == [.logs])
    #expect(device.findings(.excluded).map(\.path) == ["var/cache/web", "var/lib/web"])
    #expect(
      try device.location(
        forNew: .directory(.cache, LogicalName("web"), of: LogicalName("web.service"))) == nil)
  }

  /// A purge must not delete the target of a link in a cache, or state that is stored in a cache.
  @Test func linksDoNotMakeDataACache() throws {
    try make("srv/pages", "var/cache/deep/rows")
    try root.link("var/cache/web", to: "../../srv/pages")
    try unit("deep.service", "StateDirectory=deep\nCacheDirectory=deep")
    try root.link("var/lib/deep", to: "../cache/deep")
    let device = try find()
    #expect(device.logicalPrefixes == ["apps/deep.service/directories/state/deep"])
    #expect(device.findings(.excluded).map(\.path) == ["var/cache/web"])
    #expect(device.findings(.repeatedDirectory).map(\.path) == ["var/cache/deep"])
  }

  @Test func hostileUnitsHaveNoDirectories() throws {
    try make("outside", "var/lib/private/x", "etc/sudoers.d")
    try unit("bad.service", "StateDirectory=../../outside /outside private/x . '' %t")
    let device = try find()
    #expect(device.containers.isEmpty)
    #expect(device.findings(.unusableName).count == 6)
    try root.sparse(Self.vendor + "large.service", size: 2 << 20)
    try root.makeDirectory(Self.vendor + "directory.service")
    #expect(try find().findings(.unusableFile).count == 2)
    let many = (0..<200).map { "m\($0)" }.joined(separator: " ")
    try unit("many.service", "StateDirectory=\(many)")
    #expect(try find().findings(.excluded).map(\.path) == ["many.service"])
  }

  @Test func missingDirectoriesAreCreatedOnlyForTheirUnits() throws {
    let device = try find(.systemd)
    let (web, name) = (LogicalName("web.service"), LogicalName("web"))
    #expect(
      try device.location(forNew: .directory(.state, name, of: web))?.path
        == root.path("var/lib/web"))
    #expect(
      try device.location(forNew: .directory(.logs, LogicalName("web/access"), of: web))?.path
        == root.path("var/log/web/access"))
    // Names from a snapshot, or of a unit without such a directory.
    for container in [
      LogicalContainer.directory(.config, LogicalName("sudoers.d"), of: web),
      .directory(.state, LogicalName("../web"), of: web), .directory(.runtime, name, of: web),
      .directory(.state, name, of: LogicalName("none.service")), .state(web), .data(web),
    ] {
      #expect(try device.location(forNew: container) == nil, "\(container.prefix)")
    }
    #expect(device.containerDirectories.contains(root.path("var/lib")))
  }

  /// The unit files are read once for all new containers of a run.
  @Test func unitFilesAreReadOnce() throws {
    let device = try find(.systemd)
    let units = UnitDirectories()
    let container = LogicalContainer.directory(
      .state, LogicalName("once"), of: LogicalName("once.service"))
    #expect(try device.location(forNew: container, units: units) == nil)
    try unit("once.service", "StateDirectory=once")
    #expect(try device.location(forNew: container, units: units) == nil)
    #expect(try device.location(forNew: container)?.path == root.path("var/lib/once"))
  }

  @Test func theLayoutIsDetected() throws {
    #expect(try find().layout == .systemd)
    let other = try TemporaryDirectory()
    let asked = DeviceFinder(layout: .systemd, machineID: "m", systemFlatpak: nil)
    let error = #expect(throws: ModelError.self) { try asked.find(other.path) }
    #expect(error?.description.contains("unit files") == true)
    try other.makeDirectory("etc/systemd/system")
    #expect(try asked.find(other.path).containers.isEmpty)
    #expect(throws: ModelError.self) {
      try DeviceFinder(machineID: "m", systemFlatpak: nil).find(other.path)
    }
  }
}
