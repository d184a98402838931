import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceDiscovery

/// The base directories of a home directory.
struct XDGTests {
  private let home: TemporaryDirectory

  init() throws {
    home = try TemporaryDirectory("desktop")
    for name in [
      ".config/editor/settings", ".local/share/editor/notes.db", ".local/state/editor/history",
      ".cache/editor/http/0a", ".local/share/only-data/x",
    ] {
      try home.file(name, "x")
    }
  }

  private func find(_ layout: Layout? = nil) throws -> Device {
    try DeviceFinder(layout: layout, machineID: "m", systemFlatpak: nil).find(home.path)
  }

  @Test func eachFolderNameIsAnApp() throws {
    let device = try find()
    #expect(device.layout == .xdg)
    #expect(device.root == home.path)
    #expect(
      device.logicalPrefixes == [
        "apps/editor/cache", "apps/editor/config", "apps/editor/data", "apps/editor/state",
        "apps/only-data/data",
      ])
    #expect(device.containers.map(\.kind) == [.cache, .config, .data, .state, .data])
    #expect(device.containers.allSatisfy { $0.identification == .layout && $0.uuid == nil })
    #expect(device.apps.map(\.identifier.bytes) == ["editor", "only-data"])
    #expect(device.apps.allSatisfy { $0.isInstalled })
    #expect(device.findings.isEmpty)
    #expect(device.identity == .location(machine: "m", .xdg, root: device.root))
  }

  @Test func namesThatDifferInCaseAreDifferentApps() throws {
    try home.file(".config/Editor/settings", "y")
    let device = try find()
    #expect(device.apps.map(\.identifier.bytes) == ["Editor", "editor", "only-data"])
    #expect(try device.app("Editor").identifier.bytes == "Editor")
    #expect(#expect(throws: ModelError.self) { try device.app("EDITOR") }?.code == .ambiguousApp)
  }

  @Test func singleFilesAreContainers() throws {
    try home.file(".config/kdeglobals", "x")
    try home.file(".local/share/user-places.xbel", "x")
    try home.file(".cache/event-sound-cache.tdb", "x")
    try home.link(".config/linked", to: "../dotfiles/linked")
    let device = try find()
    let files = device.containers.filter { $0.kind == .file }
    #expect(
      files.map(\.logicalPrefix) == [
        "apps/kdeglobals/files/config", "apps/linked/files/config",
        "apps/user-places.xbel/files/data",
      ])
    #expect(files.map(\.member) == ["kdeglobals", "linked", "user-places.xbel"])
    let path = home.path(".config/kdeglobals")
    let logical = try #require(try device.logicalPath(ofPath: path))
    #expect(logical.bytes == "apps/kdeglobals/files/config/kdeglobals")
    #expect(try device.realPath(of: logical) == path)
    #expect(try device.logicalPath(ofPath: home.path(".config/other")) == nil)
  }

  /// A directory to which links of two base directories point belongs to the one that contains it.
  @Test func linksToDirectoriesAreFollowedOnce() throws {
    try home.link(".config/away", to: "../dotfiles/away")
    try home.file("dotfiles/away/init", "x")
    try home.link(".config/again", to: "../.local/share/editor")
    try home.file(".local/share/editor/sub/x", "x")
    try home.link(".local/state/inner", to: "../share/editor/sub")
    let device = try find()
    #expect(device.container(at: ".config/away")?.absolutePath == home.path("dotfiles/away"))
    #expect(device.container(at: ".local/share/editor")?.kind == .data)
    #expect(device.container(at: ".config/again") == nil)
    #expect(device.container(at: ".local/state/inner") == nil)
    #expect(
      device.findings(.repeatedDirectory).map(\.path) == [".config/again", ".local/state/inner"])
  }

  /// In two containers, a database and its log would be captured at different times.
  @Test func filesOfADatabaseAreOneContainer() throws {
    for name in [
      "a.db", "a.db-wal", "a.db-shm", "a.db-journal", "b.db-wal", "c.db-wal/x", "d-wal",
    ] {
      try home.file(".config/" + name, "x")
    }
    try home.file(".config/c.db", "x")
    try home.file(".config/d/x", "x")
    let device = try find()
    let files = device.containers.filter { $0.kind == .file }
    #expect(files.map(\.member) == ["a.db", "b.db-wal", "c.db", "d-wal"])
    let log = try #require(try device.logicalPath(ofPath: home.path(".config/a.db-wal")))
    #expect(log.bytes == "apps/a.db/files/config/a.db-wal")
    #expect(try device.realPath(of: log) == home.path(".config/a.db-wal"))
    #expect(try device.logicalPath(ofPath: home.path(".config/a.db-walk")) == nil)
  }

  /// A purge must not delete the target of a link in a cache, or data in a cache that is also used
  /// for another purpose.
  @Test func linksDoNotMakeDataACache() throws {
    try home.file("Pictures/a", "x")
    try home.link(".cache/pictures", to: "../Pictures")
    try home.file(".cache/shared/x", "x")
    try home.link(".config/shared", to: "../.cache/shared")
    try home.file(".cache/deep/settings/x", "x")
    try home.link(".local/share/deep", to: "../../.cache/deep/settings")
    let device = try find(.xdg)
    #expect(
      device.containers.filter { $0.kind == .cache }.map(\.path) == [".cache/editor"])
    #expect(
      device.container(at: ".config/shared")?.absolutePath == home.path(".cache/shared"))
    #expect(
      device.container(at: ".local/share/deep")?.absolutePath == home.path(".cache/deep/settings"))
    #expect(device.findings(.excluded).map(\.path) == [".cache/pictures"])
    #expect(
      device.findings(.repeatedDirectory).map(\.path) == [".cache/deep", ".cache/shared"])
  }

  /// A mount point in a cache can be the document portal, or contain files of a server.
  @Test(.enabled(if: (try? Mount.isPermitted()) ?? false))
  func mountsInCachesAreNotEntered() throws {
    try home.file("Documents/letter", "x")
    for path in [".cache/doc", ".config/mounted"] { try home.makeDirectory(path) }
    let portal = try Mount(binding: home.path("Documents"), on: home.path(".cache/doc"))
    let settings = try Mount(binding: home.path("Documents"), on: home.path(".config/mounted"))
    defer { withExtendedLifetime((portal, settings)) {} }
    let device = try find(.xdg)
    #expect(
      device.containers.filter { $0.kind == .cache }.map(\.path) == [".cache/editor"])
    #expect(device.container(at: ".config/mounted") != nil)
    #expect(device.findings(.excluded).map(\.path) == [".cache/doc"])
    #expect(device.findings(.mountEntered).map(\.path) == [".config/mounted"])
  }

  @Test func entriesOutsideTheLayoutAreReported() throws {
    try home.file("Documents/letter", "x")
    try home.file("dotfiles/rc", "x")
    try home.link(".config/rc", to: "../dotfiles/rc")
    let found = try find().findings(.excluded)
    #expect(Set(found.map(\.path)) == [home.path, ".config/rc"])
    #expect(found.contains { $0.reason.contains("'Documents'") })
    #expect(try find(.xdg).findings(.excluded).map(\.path) == [".config/rc"])
  }

  /// A home directory with Flatpak apps is a device of the layout flatpak, and its name selects
  /// that one.
  @Test func otherLayoutsComeFirst() throws {
    try home.makeDirectory(".var/app")
    let finder = DeviceFinder(machineID: "m", systemFlatpak: nil)
    #expect(try finder.find(home.path).layout == .flatpak)
    let candidates = try finder.candidates(in: home.path)
    #expect(candidates.map(\.layout) == [.flatpak])
    #expect(try candidates.device(home.path).layout == .flatpak)
    let asked = DeviceFinder(layout: .xdg, machineID: "m", systemFlatpak: nil)
    #expect(try asked.candidates(in: home.path).map(\.layout) == [.xdg])
  }

  @Test func theProgramsOwnDirectoriesAreExcluded() throws {
    for name in [".cache/sandboxctl/state/x", ".config/.sandboxctl/x", ".config/sandboxctl/x"] {
      try home.file(name, "x")
    }
    #expect(
      try find().logicalPrefixes.filter { "\($0)".contains("sandboxctl") }
        == ["apps/sandboxctl/config"])
  }

  @Test func oddNamesAreAppsToo() throws {
    let odd: [ByteString] = [
      "a~b%c", ".hidden", "with space", "new\nline", ByteString([0xff, 0xfe]), "ünïcode",
    ]
    for name in odd {
      try home.write("x", at: ByteString(".config").appending(name).appending("y"))
    }
    let device = try find()
    for name in odd {
      let path = ByteString(".config").appending(name)
      let container = try #require(device.containers.first { $0.path == path })
      #expect(container.owner?.bytes == name)
      #expect(try LogicalPath(container.logicalPrefix).location?.container == container.logical)
      let location = try #require(try device.location(forNew: container.logical))
      #expect(location.path == container.absolutePath)
    }
    let long = ByteString(String(repeating: "n", count: 230))
    try home.write("x", at: ByteString(".config").appending(long).appending("y"))
    #expect(try find().findings(.unidentified).count == 1)
  }

  /// The name of an entry in a snapshot has at most 255 bytes, even if it is escaped.
  @Test func longNamesFitInASnapshot() throws {
    let names = [String(repeating: "n", count: 255), String(repeating: "~", count: 100)]
    for name in names {
      try home.write("x", at: ByteString(".config/\(name)/y"))
      try home.write("x", at: ByteString(".local/share/\(name)"))
    }
    let device = try find()
    for container in device.containers {
      #expect(container.logicalPrefix.components.allSatisfy { $0.count <= 255 })
      #expect(try LogicalPath(container.logicalPrefix).location?.container == container.logical)
    }
    #expect(Set(device.logicalPrefixes).count == device.containers.count)
    #expect(device.containers.filter { $0.kind == .file }.count == 2)
    #expect(try find().logicalPrefixes == device.logicalPrefixes)
  }

  @Test func theLayoutIsDetectedByBothDirectories() throws {
    let other = try TemporaryDirectory()
    try other.file(".config/x/y", "x")
    let finder = DeviceFinder(machineID: "m", systemFlatpak: nil)
    #expect(throws: ModelError.self) { try finder.find(other.path) }
    let asked = DeviceFinder(layout: .xdg, machineID: "m", systemFlatpak: nil)
    #expect(try asked.find(other.path).logicalPrefixes == ["apps/x/config"])
    let empty = try TemporaryDirectory()
    let error = #expect(throws: ModelError.self) { try asked.find(empty.path) }
    #expect(error?.description.contains("'.config'") == true)
    #expect(try finder.candidates(in: home.path).map(\.layout) == [.xdg])
  }

  @Test func newContainersAreInTheBaseDirectories() throws {
    let device = try find()
    let app = LogicalName("new")
    for (container, path) in [
      (LogicalContainer.config(app), ".config/new"), (.data(app), ".local/share/new"),
      (.state(app), ".local/state/new"), (.cache(app), ".cache/new"),
      (.file(.config, of: app), ".config/new"), (.file(.data, of: app), ".local/share/new"),
      (.file(.state, of: app), ".local/state/new"),
    ] as [(LogicalContainer, ByteString)] {
      #expect(try device.location(forNew: container)?.path == home.path(path))
      #expect(device.containerDirectories.contains { home.path(path).isWithin($0) })
    }
    for hostile: ByteString in ["..", "../x", "/etc", ".sandboxctl", ""] {
      #expect(throws: ModelError.self) {
        try device.location(forNew: .config(LogicalName(hostile)))
      }
    }
    #expect(try device.location(forNew: .directory(.state, app, of: app)) == nil)
    #expect(try device.location(forNew: .bundle(app)) == nil)
    #expect(try device.location(forNew: .config(LogicalName("", instance: "long"))) == nil)
    #expect(try device.location(forNew: .cache(LogicalName("sandboxctl"))) == nil)
  }
}
