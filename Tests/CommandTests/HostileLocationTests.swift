import Codecs
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Identifiers, UUIDs and revisions that would redirect a restore to a path outside the device.
struct HostileLocationTests {
  private static let library = "Users/you/Library"
  private static let desktopFile = ".com.apple.containermanagerd.metadata.plist"
  private static let simulatorFile = ".com.apple.mobile_container_manager.metadata.plist"
  private static let udid = "11111111-2222-4333-8444-555555555555"

  /// Makes a macOS disk with another container whose metadata an app wrote, and another user's
  /// disk.
  private static func disk(_ location: String, _ identifier: ByteString) throws -> CommandLine {
    let cli = try CommandLine()
    let container = "disk/\(library)/\(location)"
    try cli.directory.write(
      "dear", at: ByteString("disk/\(library)/Containers/com.example.notes/Data/letter"))
    try cli.directory.write("hostile", at: ByteString("\(container)/com.user.agent.plist"))
    try cli.directory.write("hostile", at: ByteString("\(container)/Data/com.user.agent.plist"))
    let text = try #require(identifier.utf8)
    let list = PropertyList.dictionary([.init("MCMMetadataIdentifier", .string(text))])
    try cli.directory.write(list.xml(), at: ByteString("\(container)/\(desktopFile)"))
    try cli.directory.write(
      "mine", at: ByteString("other/\(library)/LaunchAgents/com.user.agent.plist"))
    _ = try Directory.make(path: cli.directory.path(ByteString("other/\(library)/Containers")))
    _ = try cli.succeed("init repo --plain")
    return cli
  }

  @Test(arguments: [
    ("Group Containers/group.com.evil", "../LaunchAgents" as ByteString, "groups/group.com.evil"),
    ("Containers/com.evil", "../../../outside/autostart", "apps/com.evil/data"),
  ])
  func pathAsIdentifierIsNotRestored(
    location: String, identifier: ByteString, logical: String
  ) throws {
    let cli = try Self.disk(location, identifier)
    let backup = try cli.run("backup --root disk/Users/you --repo repo")
    #expect(backup.code == 0, "\(backup.errors)")
    #expect(backup.errors.contains("\(identifier)"), "\(backup.errors)")
    #expect(backup.errors.contains(Self.desktopFile), "\(backup.errors)")
    // It is backed up under the name of its directory.
    #expect(try cli.succeed("ls latest --recursive --repo repo").contains(logical))
    _ = try cli.succeed("restore latest --to-device other/Users/you --repo repo")
    let agents = "other/\(Self.library)/LaunchAgents"
    #expect(
      try cli.directory.read(ByteString("\(agents)/com.user.agent.plist")) == Array("mine".utf8))
    #expect(try Directory.open(path: cli.directory.path("other")).names() == ["Users"])
    #expect(try Directory.open(path: cli.directory.path("other/Users")).names() == ["you"])
    let end = location.hasPrefix("Group") ? "" : "/Data"
    let back = "other/\(Self.library)/\(location)\(end)/com.user.agent.plist"
    #expect(try cli.directory.read(ByteString(back)) == Array("hostile".utf8))
  }

  /// Makes a repository with a snapshot of one container with a file that contains "hostile";
  /// `device` is the text of its device record without its identity, `members` that of further
  /// members.
  static func forge(
    _ container: [String], members: String = "", identity: String = "udid:" + Self.udid,
    device: (CommandLine) -> String
  ) throws -> CommandLine {
    let cli = try CommandLine()
    var forged = ForgedRepository()
    let content = Array("hostile".utf8)
    forged.add(content, kind: 0)
    var tree = forged.addTree([ForgedEntry.file(Array("evil.txt".utf8), content)])
    for name in container.reversed() {
      tree = forged.addTree([ForgedEntry.directory(Array(name.utf8), tree)])
    }
    let old = #""layout":"folder","root":"/""#
    forged.addSnapshot(tree) { text in
      text.replacingOccurrences(of: old, with: device(cli))
        .replacingOccurrences(of: #""identity":"device""#, with: #""identity":"\#(identity)""#)
        .replacingOccurrences(of: #""policy":{"#, with: members + #""policy":{"#)
    }
    try forged.write(to: cli.directory.url.appendingPathComponent("repo"))
    try cli.directory.write("mine", at: "outside/mine")
    return cli
  }

  private static func simulator(_ cli: CommandLine) throws {
    let list = try PropertyList.dictionary([.init("UDID", .string(udid))]).xml()
    try cli.directory.write(list, at: "device/device.plist")
    _ = try Directory.make(path: cli.directory.path("device/data/Containers/Data/Application"))
  }

  private static let uuids = [
    "../../../../../../outside", "..", ".", "", "a/b", "/etc", "com.example", ".sandboxctl",
    "0B3F1D2E-0001-4A5B-8C9D-00000000000G",
  ]

  @Test(arguments: uuids)
  func snapshotWithAHostileUUIDIsRefused(uuid: String) throws {
    let cli = try Self.forge(["groups", "group.a"]) { cli in
      #""layout":"coresimulator","root":"\#(cli.directory.path("device"))","containers":"#
        + #"[{"path":"groups/group.a","uuid":"\#(uuid)","real_path":"/x"}]"#
    }
    try Self.simulator(cli)
    let before = try OddTree.listing(cli.directory, "device")
    let outcome = try cli.run("restore latest --in-place --no-snapshot --repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    #expect(outcome.errors.contains("uuid"), "\(outcome.errors)")
    #expect(outcome.errors.contains("'groups/group.a'"), "\(outcome.errors)")
    #expect(outcome.errors.contains("snapshot "), "\(outcome.errors)")
    #expect(try OddTree.listing(cli.directory, "device").keys == before.keys)
    #expect(try Directory.open(path: cli.directory.path("outside")).names() == ["mine"])
    for command in [
      "snapshots show latest", "ls latest --recursive", "find evil.txt", "stats",
      "versions groups/group.a/evil.txt",
    ] {
      let read = try cli.run("\(command) --repo repo")
      #expect(read.code == 0, "\(command): \(read.errors)")
      let reported = read.errors.split(separator: "\n").count {
        $0.contains("'groups/group.a': its uuid ")
      }
      #expect(reported == 1, "\(command): \(read.errors)")
    }
    // It can still be restored into a plain directory.
    _ = try cli.succeed("restore latest --to back --repo repo")
    #expect(
      try cli.directory.read("back/groups/group.a/evil.txt") == Array("hostile".utf8))
  }

  @Test(arguments: ["../../outside", "..", "42/../../outside", "y1", ".ssh"])
  func snapshotWithAHostileRevisionIsRefused(revision: String) throws {
    let cli = try Self.forge(["apps", "hello", "revision"]) { cli in
      #""layout":"snap","root":"\#(cli.directory.path("home/snap"))","containers":"#
        + #"[{"path":"apps/hello/revision","revision":"\#(revision)","real_path":"/x"}]"#
    }
    _ = try Directory.make(path: cli.directory.path("home/snap/other/common"))
    let outcome = try cli.run(
      "restore latest --to-device home/snap --no-snapshot "
        + "--repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    #expect(outcome.errors.contains("revision"), "\(outcome.errors)")
    #expect(try Directory.open(path: cli.directory.path("home/snap")).names() == ["other"])
    #expect(try Directory.open(path: cli.directory.path("outside")).names() == ["mine"])
  }

  /// A snapshot names the root of its device, which is created if its home directory has no data of
  /// Flatpak or snap yet.
  @Test(arguments: [
    ("flatpak", "outside/new/.var/app", "name:x"), ("flatpak", "outside/.var/app", "udid:x"),
    ("flatpak", "link/.var/app", "name:x"), ("snap", "outside/snap", "place:x:snap:/home/snap"),
    ("snap", "link/snap", "name:x"), ("snap", "outside/new/snap", "name:x"),
    ("snap", "outside/../outside/snap", "name:x"),
  ])
  func rootOfAHostileSnapshotIsNotCreated(layout: String, root: String, identity: String) throws {
    let cli = try Self.forge(["apps", "hello", "data"], identity: identity) { cli in
      #""layout":"\#(layout)","root":"\#(cli.directory.path(ByteString(root)))","containers":"#
        + #"[{"path":"apps/hello/data","real_path":"/x"}]"#
    }
    try cli.directory.directory.createLink("link", to: "outside")
    let outcome = try cli.run("restore latest --in-place --no-snapshot --repo repo")
    #expect(outcome.code == 1, "\(outcome.errors)")
    #expect(try Directory.open(path: cli.directory.path("outside")).names() == ["mine"])
  }

  @Test func removedDirectoryOfAllAppsIsRestoredInPlace() throws {
    let cli = try CommandLine()
    let note: ByteString = "home/.var/app/org.example.Hello/data/note"
    try cli.directory.write("a note", at: note)
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root home/.var/app --repo repo")
    try Directory.open(path: cli.directory.path("home")).removeTree(".var")
    _ = try cli.succeed("restore latest --in-place --no-snapshot --repo repo")
    #expect(try cli.directory.read(note) == Array("a note".utf8))
  }

  /// The hint of a refused restore is meant to be pasted.
  @Test(arguments: [("$(reboot) x", true), ("x\u{1b}[2K", false)])
  func rootOfAHostileSnapshotIsQuoted(name: String, isShown: Bool) throws {
    let inJSON = name.replacing("\u{1b}", with: #"\u001b"#)
    let cli = try Self.forge(["groups", "group.a"]) { cli in
      #""layout":"coresimulator","root":"\#(cli.directory.string)/\#(inJSON)","containers":"#
        + #"[{"path":"groups/group.a","real_path":"/x"}]"#
    }
    let other = "22222222-2222-4333-8444-555555555555"
    let list = try PropertyList.dictionary([.init("UDID", .string(other))]).xml()
    try cli.directory.write(list, at: ByteString("\(name)/device.plist"))
    _ = try Directory.make(path: cli.directory.path(ByteString("\(name)/data")))
    let outcome = try cli.run("restore latest --in-place --no-snapshot --repo repo")
    #expect(outcome.code == 1, "\(outcome.errors)")
    let root = isShown ? "'\(cli.directory.string)/\(name)'" : "ROOT"
    #expect(
      outcome.errors.contains("'--to-device \(root)' restores into it anyway"),
      "\(outcome.errors)")
  }

  /// A restored journal in the program's own directory would be trusted as the user's own.
  @Test func programsOwnDirectoryIsNoRestoreTarget() throws {
    let cli = try Self.forge(["apps", ".sandboxctl", "data"]) { cli in
      #""layout":"flatpak","root":"\#(cli.directory.path("home/.var/app"))","containers":"#
        + #"[{"path":"apps/.sandboxctl/data","real_path":"/x"}]"#
    }
    _ = try Directory.make(path: cli.directory.path("home/.var/app/org.example.App/data"))
    let outcome = try cli.run("restore latest --to-device home/.var/app --no-snapshot --repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    #expect(outcome.errors.contains("'.sandboxctl'"), "\(outcome.errors)")
    let apps = try Directory.open(path: cli.directory.path("home/.var/app"))
    #expect((try? apps.directory(".sandboxctl").names())?.contains("evil.txt") != true)
  }

  @Test func reservedNameIsNotRestoredIntoAContainer() throws {
    let cli = try Self.forge(["apps", "org.example.App", "data", ".sandboxctl"]) { cli in
      #""layout":"flatpak","root":"\#(cli.directory.path("home/.var/app"))","containers":"#
        + #"[{"path":"apps/org.example.App/data","real_path":"/x"}]"#
    }
    _ = try Directory.make(path: cli.directory.path("home/.var/app/org.example.App/data"))
    let outcome = try cli.run("restore latest --to-device home/.var/app --no-snapshot --repo repo")
    #expect(outcome.code == 3, "\(outcome.output)\(outcome.errors)")
    #expect(
      outcome.errors.contains("not restored: apps/org.example.App/data/.sandboxctl (")
        && outcome.errors.contains(
          "/.sandboxctl): its name is reserved for this program"),
      "\(outcome.errors)")
    let app = try Directory.open(path: cli.directory.path("home/.var/app/org.example.App"))
    #expect(try app.names() == ["data"])
    // It can still be restored into a plain directory.
    _ = try cli.succeed("restore latest --to back --repo repo")
    #expect(
      try cli.directory.read("back/apps/org.example.App/data/.sandboxctl/evil.txt")
        == Array("hostile".utf8))
  }

  /// Snapshots of earlier versions may contain these: the logical name encodes any identifier.
  @Test(arguments: [
    ("macos", "other/Users/you", ["groups", "..%2FLaunchAgents"]),
    ("macos", "other/Users/you", ["apps", "..%2F..%2F..%2Foutside%2Fx", "data"]),
    ("macos", "other/Users/you", ["groups", "%2E."]),
    ("flatpak", "home/.var/app", ["apps", "..%2F..%2F.config", "data"]),
    ("flatpak", "home/.var/app", ["apps", "%2E.", "settings"]),
    ("snap", "home/snap", ["apps", "..%2Foutside", "data"]),
  ])
  func snapshotWithAHostileIdentifierIsRefused(
    layout: String, root: String, container: [String]
  ) throws {
    let path = container.joined(separator: "/")
    let cli = try Self.forge(container) { _ in
      #""layout":"\#(layout)","root":"/nowhere","containers":[{"path":"\#(path)","real_path":"/x"}]"#
    }
    for name in [
      "other/\(Self.library)/Containers", "home/.var/app/org.example.a/data", "home/snap/a/common",
      "home/.local/share/flatpak/overrides",
    ] {
      _ = try Directory.make(path: cli.directory.path(ByteString(name)))
    }
    let before = try OddTree.listing(cli.directory, ".").keys.filter {
      !$0.isWithin("repo") && !$0.isWithin("home/.cache")
    }
    let outcome = try cli.run(
      "restore latest --to-device \(root) --no-snapshot "
        + "--repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    #expect(outcome.errors.contains("'\(path)'"), "\(outcome.errors)")
    let after = try OddTree.listing(cli.directory, ".").keys.filter {
      !$0.isWithin("repo") && !$0.isWithin("home/.cache")
    }
    #expect(after.sorted() == before.sorted())
  }
}
