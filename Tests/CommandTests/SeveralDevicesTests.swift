import Foundation
import SystemIO
import TestSupport
import Testing

/// Several devices of a user in one run, and several runs of one device.
struct SeveralDevicesTests {
  private let cli: CommandLine

  /// Makes a home with a Flatpak app and a snap of the same name, and one other app of each.
  init() throws {
    cli = try CommandLine()
    for path in [
      "home/.var/app/org.example.editor/data/notes", "home/.var/app/org.example.Games/data/score",
      "home/snap/editor/42/notes", "home/snap/editor/common/places", "home/snap/server/7/config",
    ] {
      try cli.directory.write("x", at: ByteString(path))
    }
    for (location, target) in [("editor", "42"), ("server", "7")] as [(ByteString, ByteString)] {
      try Directory.open(path: cli.directory.path("home/snap").appending(location))
        .createLink("current", to: target)
    }
    _ = try cli.succeed("init repo --plain")
  }

  /// Describes each snapshot: its layout, and the apps in it.
  private func snapshots() throws -> [String] {
    try cli.jsonLines("snapshots --json --repo repo").map { snapshot in
      let apps = snapshot["apps"] as? [String] ?? []
      return "\(snapshot["layout"] ?? ""): \(apps.sorted().joined(separator: " "))"
    }
  }

  @Test func everyDeviceIsBackedUp() throws {
    let reports = try cli.jsonLines("backup --json")
    #expect(reports.count == 2)
    #expect(
      try snapshots() == ["flatpak: org.example.Games org.example.editor", "snap: editor server"])
  }

  @Test func appIsBackedUpFromItsDevice() throws {
    _ = try cli.succeed("backup --app Games --quiet")
    #expect(try snapshots() == ["flatpak: org.example.Games"])
    _ = try cli.succeed("backup --app server --quiet")
    #expect(try snapshots().dropFirst() == ["snap: server"])
    // Both devices have an app of this name.
    let text = try cli.succeed("backup --app editor")
    #expect(try snapshots().dropFirst(2) == ["flatpak: org.example.editor", "snap: editor"])
    #expect(text.split(separator: "\n").count { $0.hasPrefix("device  ") } == 2, "\(text)")
    let dry = try cli.jsonLines("backup --app editor --dry-run --json")
    #expect(dry.count == 2)
  }

  /// Apps of different devices in one run: each device stores its own apps, and a name that no
  /// device has is an error before anything is done.
  @Test func appsOfDifferentDevicesAreBackedUpTogether() throws {
    _ = try cli.succeed("backup --app Games --app server --quiet")
    #expect(try snapshots() == ["flatpak: org.example.Games", "snap: server"])
    let outcome = try cli.run("backup --app Games --app nobody")
    #expect(outcome.code == 1 && outcome.errors.contains("'nobody'"), "\(outcome.errors)")
    #expect(try snapshots().count == 2)
    let purge = "purge --level critical --dry-run --json"
    try cli.directory.write("cached", at: "home/.var/app/org.example.Games/cache/a")
    try cli.directory.write("cached", at: "home/.var/app/org.example.editor/cache/a")
    let plans = try cli.jsonLines("\(purge) --app Games --app server")
    let candidates = plans.filter { $0["event"] as? String == "candidate" }
      .compactMap { $0["path"] as? String }
    #expect(candidates.contains { $0.hasPrefix("apps/org.example.Games/") }, "\(candidates)")
    #expect(candidates.allSatisfy { !$0.contains("editor") }, "\(candidates)")
    #expect(plans.count { $0["event"] as? String == "plan" } == 2)
    #expect(try cli.run("\(purge) --app nobody").code == 1)
  }

  /// A real path is in one of the devices, so that it selects it.
  @Test func realPathSelectsItsDevice() throws {
    let home = cli.directory.string + "/home"
    for line in [
      "explain \(home)/.var/app/org.example.Games/data/score",
      "explain \(home)/snap/server/7/config", "explain home/snap/server/7/config",
      "explain \(home)/snap/server/7/none", "classify \(home)/snap/editor/42",
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    }
    // A logical path may exist on both devices, and two paths, one on each, are not on a single
    // device.
    for line in [
      "explain apps/editor/data", "explain \(home)/other", "classify",
      "exclude \(home)/snap/editor/42 \(home)/.var/app/org.example.Games/data --dry-run",
    ] {
      let outcome = try cli.run(line)
      #expect(
        outcome.code == 2 && outcome.errors.contains("you have 2 devices"),
        "\(line): \(outcome.errors)")
    }
  }

  /// A path in an app selects the device that has the app, as `--app` does. The snapshots of the
  /// snaps are the newest ones.
  @Test func pathInAnAppSelectsItsDevice() throws {
    _ = try cli.succeed("backup --quiet")
    for path in ["Games/data/score", "org.example.Games", "apps/org.example.Games/data"] {
      let outcome = try cli.run("ls latest:\(path) --recursive")
      #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
      #expect(outcome.output.contains("score"), "\(outcome.output)")
    }
    #expect(try cli.succeed("dump latest:Games/data/score") == "x")
    _ = try cli.succeed("restore latest:Games --to back --quiet")
    #expect(try cli.names(in: "back/data").contains("score"))
    _ = try cli.succeed("export tar latest:Games games.tar --quiet")
    let package = try cli.run("export xcappdata latest games.xcappdata --app Games")
    #expect(!package.errors.contains("no such app"), "\(package.errors)")
    // Both devices have this app: the newest snapshot is that of the snaps.
    let both = try cli.run("ls latest:editor")
    #expect(both.errors.contains("warning: 'latest' is "), "\(both.errors)")
    let none = try cli.run("ls latest:nobody/x")
    #expect(none.code == 1 && none.errors.contains("no such app"), "\(none.errors)")
    let time = try cli.run("ls 2999-01-01:Games")
    #expect(time.code == 0 && time.errors.isEmpty, "\(time.errors)")
  }

  /// In a repository with several devices `latest` would warn, so a snapshot is named.
  @Test func suggestedCommandsNameTheSnapshot() throws {
    _ = try cli.succeed("backup --quiet")
    for line in ["backup --root home/snap", "backup --layout folder --root home/snap/server"] {
      let last = try #require(try cli.succeed(line).split(separator: "\n").last)
      let words = try #require(last.wholeMatch(of: /next: sandboxctl (.*) {5}sandboxctl (.*)/))
      let id = try #require(try cli.snapshots().last).prefix(8)
      for command in [String(words.output.1), String(words.output.2)] {
        #expect(command.contains(" \(id)"), "\(command)")
        let outcome = try cli.run(command)
        #expect(outcome.code == 0 && !outcome.errors.contains("warning"), "\(outcome.errors)")
      }
      try cli.directory.directory.removeTree("restored")
    }
    // Two snapshots were made.
    let last = try #require(try cli.succeed("backup").split(separator: "\n").last)
    #expect(last.contains("next: ") && !last.contains("latest"), "\(last)")
  }

  /// The same path on several devices: each version and each match names its device.
  @Test func versionsAndMatchesNameTheirDevice() throws {
    for (location, text) in [("one", "first"), ("other", "second")] {
      try cli.directory.write(text, at: ByteString("\(location)/tree/note"))
      _ = try cli.succeed("backup --layout folder --root \(location)/tree --quiet")
    }
    let roots = ["one", "other"].map { "\(cli.directory.string)/\($0)/tree" }
    let versions = try cli.succeed("versions folders/tree/note").split(separator: "\n")
    #expect(versions.count == 3 && versions[0].contains(" device "), "\(versions)")
    for root in roots {
      #expect(versions.count { $0.contains("\(Host.name):\(root) ") } == 1, "\(versions)")
    }
    let found = try cli.succeed("find note").split(separator: "\n")
    for root in roots {
      #expect(found.count { $0.hasSuffix("\(Host.name):\(root)") } == 1, "\(found)")
    }
    let devices = try cli.jsonLines("find note --json").map { $0["devices"] as? [String] ?? [] }
    #expect(devices.count == 2 && Set(devices.flatMap { $0 }).count == 2)
    // So does a path that only one of them has.
    try cli.directory.write("third", at: "one/tree/own")
    _ = try cli.succeed("backup --layout folder --root one/tree --quiet")
    let own = try cli.succeed("versions folders/tree/own")
    #expect(own.contains(" device ") && own.contains("\(Host.name):\(roots[0]) "), "\(own)")
    // With a single device, it is not named.
    let one = try cli.run("versions folders/tree/note --repo own")
    #expect(one.code == 10)
    _ = try cli.succeed("init own --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root one/tree --quiet --repo own")
    let alone = try cli.succeed("versions folders/tree/note --repo own")
    #expect(!alone.contains("device") && !alone.contains(roots[0]), "\(alone)")
    #expect(try !cli.succeed("find note --repo own").contains(roots[0]))
  }

  /// Actions of another program are reported as such: the program's own trash receives nothing.
  @Test func actionsOfAnotherProgramAreReported() throws {
    let text = try cli.succeed("uninstall server --root home/snap")
    #expect(text.contains("would be removed: 1 B in 1 file (user-data 1 B)"), "\(text)")
    #expect(text.contains("run: snap remove server") && !text.contains("trash"), "\(text)")
    #expect(try cli.directory.read("home/snap/server/7/config") == Array("x".utf8))
    let package = try cli.run("update New.app --root home/snap")
    #expect(
      package.code == 2 && package.errors.contains("give the app's name"), "\(package.errors)")
  }

  @Test func unknownAppIsAnError() throws {
    let outcome = try cli.run("backup --app nobody")
    #expect(outcome.code == 1 && outcome.errors.contains("nobody"), "\(outcome.errors)")
    #expect(try snapshots().isEmpty)
  }

  /// A device that cannot be read is reported because it may have the app, and the other devices
  /// are processed.
  @Test(arguments: ["backup --quiet", "backup --app editor --quiet"])
  func unreadableDeviceIsReported(_ line: String) throws {
    try cli.directory.directory.directory("home").removeTree("snap")
    try cli.directory.directory.directory("home").createLink("snap", to: "snap")
    let outcome = try cli.run(line)
    #expect(outcome.code == 1 && outcome.errors.contains("home/snap'"), "\(outcome.errors)")
    #expect(try snapshots().map { $0.prefix(8) } == ["flatpak:"])
  }

  /// The first run is delayed in its sync calls, and then stopped until the second has ended.
  @Test(.enabled(if: Strace.isPermitted)) func secondOfTwoConcurrentRunsIsBusy() throws {
    let outcome = try cli.run(
      [],
      under: [
        "bash", "-c",
        """
        calls=fsync,fdatasync,syncfs
        strace -f -o trace -e trace=$calls -e inject=$calls:delay_enter=1000000 \\
          "$0" backup --root home/.var/app --quiet & first=$!
        while [ -z "$(ls repo/leases)" ] && kill -0 $first; do sleep 0.01; done
        pkill -STOP -P $first
        "$0" backup --root home/.var/app --quiet; echo "second $?"
        pkill -CONT -P $first
        wait $first; echo "first $?"
        """,
      ])
    #expect(outcome.output == "second 11\nfirst 0\n", "\(outcome.errors)")
    #expect(outcome.errors.contains("another backup of the same source is in progress"))
    #expect(try snapshots().count == 1)
  }
}
