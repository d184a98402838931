import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A system with snaps: `/home/you/snap`, `/var/snap` and `/snap` in a temporary directory.
struct SnapSystem {
  let directory: TemporaryDirectory
  static let home = "home/you/snap"

  init() throws { directory = try TemporaryDirectory("snaps") }

  /// Makes a snap's revisions with one file each, the link to the current one, and its common data.
  func snap(
    _ name: String, _ revisions: [String], current: String?, common: Bool = true,
    in base: String = home
  ) throws {
    for revision in revisions { try directory.file("\(base)/\(name)/\(revision)/of", revision) }
    if common { try directory.file("\(base)/\(name)/common/shared", "x") }
    if let current { try directory.link("\(base)/\(name)/current", to: current) }
  }

  func yaml(_ name: String, revision: String, _ text: String) throws {
    try directory.file("snap/\(name)/\(revision)/meta/snap.yaml", text)
    try directory.link("snap/\(name)/current", to: revision)
  }

  func find(_ path: String = home, layout: Layout? = nil) throws -> Device {
    try DeviceFinder(layout: layout, machineID: "m", systemFlatpak: nil)
      .find(directory.path(ByteString(path)))
  }
}

struct SnapTests {
  @Test func findsTheRevisionInUseAndTheOldOnes() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["41", "42", "x1", "43.old"], current: "42")
    try system.snap("fresh", [], current: nil)
    try system.directory.file("home/you/snap/.sandboxctl/journal/x", "x")
    let device = try system.find()
    #expect(device.layout == .snap)
    #expect(device.root == system.directory.path("home/you/snap"))
    #expect(
      device.logicalPrefixes == [
        "apps/editor/data", "apps/editor/old-revisions/41", "apps/editor/old-revisions/43.old",
        "apps/editor/old-revisions/x1", "apps/editor/revision", "apps/fresh/data",
      ])
    #expect(device.containers.map(\.revision) == [nil, "41", "43.old", "x1", "42", nil])
    #expect(
      device.containers.map(\.kind) == [
        .data, .oldRevision, .oldRevision, .oldRevision, .revision, .data,
      ])
    #expect(device.findings.isEmpty)
    #expect(device.containers.allSatisfy { $0.uuid == nil && $0.identification == .layout })
    #expect(device.identity == .location(machine: "m", .snap, root: device.root))
    let link = try Directory.open(path: device.root.appending("editor")).status("current")
    #expect(
      device.container(at: "editor/42")?.inUseSince == min(link.modified, link.changed))
    #expect(device.container(at: "editor/41")?.inUseSince == nil)
  }

  @Test func findsSystemDataAndInstalledSnaps() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["42"], current: "42")
    try system.snap("editor", ["41", "42"], current: "42", in: "var/snap")
    try system.snap("server", ["7"], current: "7", in: "var/snap")
    try system.yaml(
      "editor", revision: "42",
      "name: editor\ntitle: The Editor\nversion: '1.10'\napps:\n  editor: {command: bin/e}\n")
    try system.yaml("tool", revision: "x3", "name: tool\nversion: 2\napps: {tool: {}}\n")
    try system.yaml("core22", revision: "9", "name: core22\nversion: 1\ntype: base\n")
    try system.yaml("broken", revision: "1", "name: [\n")
    let device = try system.find()
    #expect(
      device.logicalPrefixes == [
        "apps/editor/data", "apps/editor/old-system-revisions/41", "apps/editor/revision",
        "apps/editor/system-data", "apps/editor/system-revision", "apps/server/system-data",
        "apps/server/system-revision",
      ])
    #expect(device.apps.map(\.identifier.bytes) == ["editor", "server", "tool"])
    let editor = try device.app("the editor")
    #expect(editor.isInstalled && editor.version == "1.10" && editor.build == "42")
    #expect(try !device.app("server").isInstalled)
    #expect(try device.app("tool").version == "2")
    #expect(device.findings.map(\.code) == [.unusableFile])
    #expect(device.findings.first?.path.lastComponent == "snap.yaml")
    // The home directory is not one of the system's directories, whose paths are absolute.
    #expect(
      device.containers.first { $0.kind == .systemRevision }?.path
        == system.directory.path("var/snap/editor/42"))
  }

  @Test func homeElsewhereHasASystemOnlyOnRequest() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["1"], current: "1", in: "copy/snap")
    try system.snap("editor", ["1"], current: "1", in: "var/snap")
    try system.snap("editor", ["1"], current: "1", in: "root/snap")
    #expect(
      try system.find("copy").logicalPrefixes == ["apps/editor/data", "apps/editor/revision"])
    #expect(try system.find("root/snap").containers.count == 4)
    let said = DeviceFinder(machineID: "m", systemRoot: system.directory.path)
    #expect(try said.find(system.directory.path("copy")).containers.count == 4)
  }

  @Test func pathsMapBothWays() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["41", "42"], current: "42")
    try system.snap("editor", ["41", "42"], current: "42", in: "var/snap")
    let device = try system.find()
    let locations = [
      ("home/you/snap/editor/common/a/b", "apps/editor/data/a/b"),
      ("home/you/snap/editor/42/a/b", "apps/editor/revision/a/b"),
      ("home/you/snap/editor/41/a", "apps/editor/old-revisions/41/a"),
      ("var/snap/editor/common", "apps/editor/system-data"),
      ("var/snap/editor/42/x", "apps/editor/system-revision/x"),
      ("var/snap/editor/41/x", "apps/editor/old-system-revisions/41/x"),
    ]
    for (real, logical) in locations {
      let path = system.directory.path(ByteString(real))
      #expect(try device.logicalPath(ofPath: path)?.bytes == ByteString(logical))
      #expect(try device.realPath(of: LogicalPath(ByteString(logical))) == path)
    }
    #expect(
      try device.logicalPath(ofPath: system.directory.path("home/you/snap/editor/current/a")) == nil
    )
    for container in device.containers {
      let path = try LogicalPath(container.logical, ByteString([0xff, 0x2f, 0x41]))
      #expect(try device.resolve(path).container == container)
      #expect(path.location?.container == container.logical)
    }
    #expect(try LogicalPath("apps/editor/old-revisions").location == nil)
    #expect(try LogicalPath("apps/editor/revisions/42").location == nil)
  }

  /// If the revision in use is unknown, no revision counts as old.
  @Test(
    arguments: [
      (nil, Finding.Code.contradiction), ("43", .danglingLink), ("../other/42", .danglingLink),
      ("common", .danglingLink), ("loop", .danglingLink), ("/nowhere/editor/43", .danglingLink),
    ] as [(String?, Finding.Code)])
  func unknownRevisionsAreKept(current: String?, code: Finding.Code) throws {
    let system = try SnapSystem()
    try system.snap("editor", ["41", "42", "40.old"], current: current)
    try system.snap("other", ["42"], current: "42")
    try system.directory.link("home/you/snap/editor/loop", to: "current")
    let device = try system.find()
    let kinds = device.containers.filter { $0.owner?.bytes == "editor" && $0.kind != .data }
    #expect(kinds.filter { $0.kind == .revision }.map(\.revision) == ["41", "42"])
    #expect(kinds.filter { $0.kind == .oldRevision }.map(\.revision) == ["40.old"])
    #expect(kinds.allSatisfy { $0.inUseSince == nil })
    #expect(device.findings.contains { $0.code == code && $0.path == "editor/current" })
    #expect(device.logicalPrefixes.contains("apps/editor~42/revision"))
  }

  @Test func directoryNamedCurrentIsKept() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["41", "42"], current: nil)
    try system.directory.file("home/you/snap/editor/current/of", "a copy")
    let device = try system.find()
    #expect(
      device.containers.filter { $0.kind == .revision }.map(\.path)
        == ["editor/41", "editor/42", "editor/current"])
  }

  @Test func currentThatLeadsElsewhereIsKept() throws {
    let system = try SnapSystem()
    try system.directory.file("big/42/of", "elsewhere")
    try system.snap("editor", ["41"], current: system.directory.string + "/big/42")
    let device = try system.find()
    #expect(
      device.containers.filter { $0.kind == .revision }.map(\.path)
        == ["editor/41", "editor/current"])
    #expect(device.container(at: "editor/current")?.absolutePath == system.directory.path("big/42"))
  }

  @Test func absoluteCurrentIsFollowed() throws {
    let system = try SnapSystem()
    try system.snap(
      "editor", ["41", "42"], current: system.directory.string + "/home/you/snap/editor/41")
    try system.snap("moved", ["7", "8"], current: "/home/before/snap/moved/8")
    let device = try system.find()
    #expect(
      device.containers.filter { $0.kind == .revision }.map(\.path) == ["editor/41", "moved/8"])
    #expect(device.findings.map(\.code) == [.linkFollowed])
    #expect(device.findings.first?.path == "moved/current")
  }

  @Test func currentMustBeAnExistingDirectory() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["41"], current: "42")
    try system.directory.link("home/you/snap/editor/42", to: "/nowhere")
    let device = try system.find()
    #expect(device.containers.filter { $0.kind == .revision }.map(\.revision) == ["41"])
    #expect(device.findings(.danglingLink).count == 2)
  }

  @Test func linksToOtherDirectoriesAreFollowedOnce() throws {
    let system = try SnapSystem()
    try system.directory.file("big/common/x", "x")
    try system.directory.file("big/snap/1/x", "x")
    try system.directory.link(
      "home/you/snap/editor/common", to: system.directory.string + "/big/common")
    try system.directory.link("home/you/snap/whole", to: system.directory.string + "/big/snap")
    try system.directory.link("big/snap/current", to: "1")
    try system.directory.link("big/snap/common", to: system.directory.string + "/big/common")
    let device = try system.find()
    #expect(device.logicalPrefixes == ["apps/editor/data", "apps/whole/revision"])
    #expect(device.findings(.linkFollowed).count == 3)
    #expect(device.findings(.repeatedDirectory).count == 1)
  }

  @Test func otherEntriesAreReportedAsExcluded() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["42"], current: "42")
    try system.directory.file("home/you/snap/editor/backup of me/x", "x")
    try system.directory.file("home/you/snap/a file", "x")
    let device = try system.find()
    #expect(device.findings(.excluded).map(\.path) == ["editor/backup of me"])
    #expect(device.findings(.orphan).map(\.path) == ["a file"])
  }

  @Test func isFoundByDetectionAndByName() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["42"], current: "42")
    try system.snap("editor", ["42"], current: "42", in: "elsewhere/all")
    try system.snap("editor", ["42"], current: "42", in: "hidden/.snap/data")
    try system.directory.file("photos/snap/holiday/1.jpg", "x")
    for path in ["home/you", "home/you/snap", "elsewhere/all", "hidden", "hidden/.snap/data"] {
      #expect(try system.find(path).layout == .snap, "\(path)")
    }
    #expect(throws: ModelError.self) { try system.find("photos") }
    #expect(throws: ModelError.self) { try system.find("photos/snap") }
    #expect(try system.find("photos", layout: .snap).containers.isEmpty)
    let refused = #expect(throws: ModelError.self) { try system.find("elsewhere", layout: .snap) }
    #expect(refused?.reason.contains("no 'snap' directory") == true)
  }

  @Test func homeWithTwoLayoutsIsReported() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["42"], current: "42")
    try system.directory.file("home/you/.var/app/org.example.App/data/x", "x")
    let device = try system.find("home/you")
    #expect(device.layout == .flatpak)
    #expect(
      device.findings(.anotherLayout).map(\.reason).first?.contains("'--layout snap'") == true)
    #expect(try system.find("home/you", layout: .snap).findings.isEmpty)
  }

  @Test func unreadableDirectoriesAreReported() throws {
    let system = try SnapSystem()
    try system.snap("editor", ["42"], current: "42")
    try system.snap("closed", ["1"], current: "1")
    try system.directory.directory.setPermissions(0, of: "home/you/snap/closed")
    defer { try? system.directory.directory.setPermissions(0o755, of: "home/you/snap/closed") }
    try Unprivileged.run {
      let device = try system.find()
      #expect(device.container(at: "closed")?.isReadable == false)
      #expect(device.findings(.unreadable).map(\.path) == ["closed"])
    }
  }
}
