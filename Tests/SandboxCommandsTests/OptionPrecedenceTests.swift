import SystemIO
import TestSupport
import Testing

@testable import SandboxCommands

/// Options that cannot be used together: those of the command line replace those of the
/// configuration, and those of a more specific part of the configuration replace the others.
struct OptionPrecedenceTests {
  /// A command line, a configuration, and the words that the configuration adds.
  struct Row: Sendable {
    let line: String
    let configuration: String
    let added: [String]

    init(_ line: String, _ configuration: String, adds added: [String] = []) {
      (self.line, self.configuration, self.added) = (line, configuration, added)
    }
  }

  private func added(_ row: Row) throws -> [String] {
    let words = row.line.split(separator: " ").map(String.init)
    let program = KnownCommand(SandboxctlCommand.self)
    let configuration = try Configuration(
      Array(row.configuration.utf8), at: "config.yaml", for: program,
      running: program.commands(of: words).last)
    return try ConfiguredCommandLine(words, completedBy: configuration, for: program)
      .added.map { $0.words.joined(separator: " ") }
  }

  private static let ofCommandLine = [
    Row("check --read-data", "check: {read-data-subset: 10%}"),
    Row("check --read-data-subset 1/2", "read-data: true"),
    Row("check --append-only", "check: {read-data: true, quiet: true}", adds: ["--quiet"]),
    Row("check --append-only", "metrics: /m"),
    Row(
      "forget 1234abcd", "forget: {app: x, host: h, tag: [t], keep-daily: 3}",
      adds: ["--keep-daily=3"]),
    Row("forget 1234abcd", "forget: {this-host: true}"),
    // A schedule must not remove snapshots of another host.
    Row("forget --this-host", "forget: {host: h, tag: [t]}", adds: ["--tag=t"]),
    Row("forget --host h", "forget: {this-host: true}"),
    Row("copy latest", "copy: {to: /b, tag: [x], host: h}", adds: ["--to=/b"]),
    Row("copy --to /b -- latest", "copy: {app: x}"),
    Row("copy --to-identity x latest", "to: /b\ncopy: {to-passphrase-file: /p}", adds: ["--to=/b"]),
    Row("key change --new-passphrase-command x", "new-passphrase-file: /p"),
    Row("cache clear --all", "profiles: {a: {repo: /b}}\nquiet: true", adds: ["--quiet"]),
    Row("cache clear --all --profile a", "profiles: {a: {repo: /b}}"),
    Row("cache clear 1234abcd", "cache: {clear: {all: true}}"),
    Row("migrate --from a --to b --app x", "migrate: {all: true}"),
    Row(
      "restore latest --in-place", "to: /b\nrestore: {force: true, quiet: true}",
      adds: ["--quiet"]),
    Row(
      "restore latest --to x", "restore: {no-snapshot: true, force: true, overwrite: always}",
      adds: ["--overwrite=always"]),
    Row("mirror --to-s3-endpoint https://b", "to-s3-profile: a\nmirror: {to-s3-path-style: true}"),
    Row(
      "mirror --s3-endpoint https://b", "s3-region: a\ns3-profile: a\nto-s3-profile: b",
      adds: ["--to-s3-profile=b"]),
    Row("restore latest --to x --class user-data", "delete: true"),
    Row("classify --stdin0", "classify: {findings: true, summary: true}", adds: ["--summary"]),
    Row("classify --findings", "summary: true"),
    Row("classify /x", "classify: {stdin0: true}"),
    Row("dump --tar latest:x", "dump: {merge-log: true}"),
    Row("stats latest", "stats: {growth: true}"),
    Row("audit --json", "audit: {format: sarif}"),
    Row("audit --format sarif", "json: true"),
    Row("scenario run --tap x", "json: true"),
    Row("interapp handlers --url x:", "interapp: {handlers: {type: public.data}}"),
    Row("purge --free 1G", "purge: {until-free: 10}"),
    Row("purge --dry-run", "purge: {watch: true, interval: 5m, yes: true}", adds: ["--yes"]),
    Row("purge --query", "purge: {level: critical, yes: true}", adds: ["--yes"]),
    Row("schedule install --cron --hourly", "schedule: {install: {daily: true, systemd: true}}"),
    Row(
      "schedule install --cron --purge",
      "metrics: /m\nwhen: on-ac\nschedule: {install: {keep-daily: 7, forget-every: daily}}"),
    Row(
      "schedule install --systemd --purge",
      "schedule: {install: {hourly: true, random-delay: 5m}}"),
    Row(
      "schedule install --purge", "schedule: {install: {systemd: true, calendar: x}}",
      adds: ["--systemd"]),
    Row("schedule install --cron", "schedule: {install: {forget-every: daily, keep-oldest: true}}"),
    Row(
      "schedule install --cron --keep-daily 7", "schedule: {install: {purge: true, hourly: true}}",
      adds: ["--hourly"]),
    Row(
      "schedule install --profile a --systemd",
      "schedule: {install: {purge: true}}\nprofiles: {a: {schedule: {install: {keep-last: 1}}}}",
      adds: ["--keep-last=1"]),
    Row("init /b --recipient age1x", "recovery-key: /r\npassphrase-file: /p"),
    Row("init /b", "recovery-key: /r\ninit: {recipient: age1x}", adds: ["--recipient=age1x"]),
    Row("key trust --snapshot all", "key: {trust: {name: x}}"),
    Row("init /b --plain", "recovery-key: /r\npassphrase-file: /p"),
    Row("restore latest:notes/a --to x", "app: notes\nrestore: {quiet: true}", adds: ["--quiet"]),
    Row("restore --to x /home/a/notes", "restore: {app: [notes, other]}"),
    Row("restore latest:a --in-place", "restore: {app: notes, overwrite: always}"),
    Row("export tar latest -", "json: true"),
    Row("export zip -", "json: true\nexport: {quiet: true}", adds: ["--quiet"]),
    Row("export itunes latest x", "export: {itunes: {from-device: /d}}"),
  ]

  @Test(arguments: ofCommandLine) func commandLineReplacesOtherOptions(_ row: Row) throws {
    #expect(try added(row) == row.added, "\(row.line)")
  }

  @Test(arguments: [
    Row("check", "check: {read-data-subset: 10%}", adds: ["--read-data-subset=10%"]),
    // The value of an option is not an argument.
    Row("copy --to /b", "copy: {tag: x}", adds: ["--tag=x"]),
    Row("restore latest --to x", "restore: {app: notes}", adds: ["--app=notes"]),
    Row("export tar x.tar", "json: true", adds: ["--json"]),
    Row(
      "export itunes x", "export: {itunes: {from-device: /d}}", adds: ["--from-device=/d"]),
    Row("copy --to=/b --no-check --tag x", "copy: {check: true}"),
    Row("stats --repo /b", "stats: {growth: true}", adds: ["--growth"]),
    // An unset flag is not a choice.
    Row(
      "check --no-read-data", "check: {read-data: true, read-data-subset: 10%}",
      adds: ["--read-data-subset=10%"]),
    // Settings that limit the deletion stay.
    Row("restore latest --to x --delete", "class: [a]", adds: ["--class=a"]),
    Row("purge --watch", "dry-run: true", adds: ["--dry-run"]),
    Row("purge --watch", "purge: {free: 1G, level: low}", adds: ["--free=1G", "--level=low"]),
    // Neither an empty list nor a scheduler is a choice for commands that accept others.
    Row("restore latest --to x", "delete: true\nrestore: {class: []}", adds: ["--delete"]),
    Row(
      "migrate --from a --to b --profile p",
      "migrate: {all: true}\nprofiles: {p: {migrate: {app: []}}}", adds: ["--all"]),
    Row(
      "schedule install --cron --purge", "schedule: {install: {hourly: true}}", adds: ["--hourly"]),
    Row("schedule install --cron --daily", "schedule: {install: {purge: true}}", adds: ["--purge"]),
    Row(
      "schedule install --cron --keep-daily 7",
      "schedule: {install: {forget-every: daily, keep-oldest: true}}",
      adds: ["--forget-every=daily", "--keep-oldest"]),
    Row(
      "init /b --recipient age1x --passphrase-file /p", "recovery-key: /r",
      adds: ["--recovery-key=/r"]),
    Row("schedule remove --systemd", "schedule: {remove: {cron: true}}", adds: ["--cron"]),
  ])
  func otherSettingsStay(_ row: Row) throws {
    #expect(try added(row) == row.added, "\(row.line)")
  }

  /// Settings that let a command destroy data are dropped together with the target or the goal for
  /// which they were set.
  @Test(arguments: [
    Row(
      "restore latest --to x",
      "restore: {in-place: true, overwrite: always, delete: true, delete-excluded: true}"),
    Row(
      "restore latest --in-place --dry-run",
      "overwrite: always\nrestore: {to: /b, delete: true, class: [a]}", adds: ["--class=a"]),
    Row(
      "restore latest --in-place",
      "restore: {to-device: /b, force: true, no-snapshot: true, with-groups: true, policy: /p}",
      adds: ["--policy=/p"]),
    // Settings that protect files there are not dropped.
    Row(
      "restore latest --in-place", "restore: {to: /b, overwrite: never, delete: true}",
      adds: ["--overwrite=never"]),
    Row(
      "restore latest --in-place", "restore: {to-device: /b, overwrite: if-newer}",
      adds: ["--overwrite=if-newer"]),
    Row("restore latest --to x", "restore: {in-place: true, overwrite: if-newer}"),
    Row(
      "restore latest --to x", "restore: {in-place: true, overwrite: never}",
      adds: ["--overwrite=never"]),
    // This also applies to settings in a more specific part than that of the target.
    Row("restore latest --to x", "in-place: true\nrestore: {overwrite: always, delete: true}"),
    Row(
      "restore latest --profile a",
      "restore: {in-place: true, delete: true}\nprofiles: {a: {restore: {to: /b, overwrite: always}}}",
      adds: ["--to=/b", "--overwrite=always"]),
    Row("purge --until-free 10", "purge: {free: 1G, yes: true, level: low}", adds: ["--level=low"]),
    Row("migrate --from a --to b --all", "migrate: {app: [x], force: true, allow-downgrade: true}"),
    // If the target is not replaced, or not set, its settings stay.
    Row(
      "restore latest --to x", "restore: {in-place: false, overwrite: always, delete: true}",
      adds: ["--overwrite=always", "--delete"]),
    Row("purge --free 1G", "purge: {yes: true}", adds: ["--yes"]),
  ])
  func settingsOfAReplacedTargetOrGoalAreDropped(_ row: Row) throws {
    #expect(try added(row).sorted() == row.added.sorted(), "\(row.line): \(row.configuration)")
  }

  /// A different value of the same option is another target.
  @Test(arguments: [
    Row("restore latest --to x", "restore: {to: /safe, overwrite: always, delete: true}"),
    Row("restore latest --to /safe", "to: /safe\nrestore: {overwrite: always, delete: true}"),
    Row(
      "restore latest --to x", "restore: {to: /safe, overwrite: never, delete: true}",
      adds: ["--overwrite=never"]),
    Row(
      "restore latest --to-device x",
      "restore: {to-device: /safe, overwrite: if-newer, force: true, no-snapshot: true}",
      adds: ["--overwrite=if-newer"]),
    Row("restore latest --in-place", "restore: {in-place: true, overwrite: always, delete: true}"),
    Row(
      "restore latest --app b", "restore: {in-place: true, app: [a], delete: true}",
      adds: ["--in-place"]),
    Row(
      "restore latest --no-in-place", "to: /b\nrestore: {in-place: true, delete: true}",
      adds: ["--to=/b"]),
    // A target in a profile.
    Row(
      "restore latest --profile a",
      "restore: {to: /safe, overwrite: always, delete: true}\nprofiles: {a: {to: /b}}",
      adds: ["--to=/b"]),
    Row(
      "restore latest --profile a",
      "restore: {to: /safe, overwrite: always}\n"
        + "profiles: {a: {to: /b, restore: {overwrite: if-newer, delete: true}}}",
      adds: ["--to=/b", "--overwrite=if-newer", "--delete"]),
    Row(
      "restore latest --profile a",
      "to: /b\nrestore: {in-place: true, delete: true}\nprofiles: {a: {in-place: false}}",
      adds: ["--to=/b"]),
    // Settings in a more specific part for the same target stay.
    Row(
      "restore latest --profile a",
      "restore: {to: /b}\nprofiles: {a: {overwrite: always, delete: true}}",
      adds: ["--to=/b", "--overwrite=always", "--delete"]),
  ])
  func anotherTargetOfARestoreDropsTheSettingsOfTheFirst(_ row: Row) throws {
    #expect(try added(row).sorted() == row.added.sorted(), "\(row.line): \(row.configuration)")
  }

  @Test(arguments: [
    Row(
      "purge --root x",
      "root: /d\npurge: {yes: true, level: critical, watch: true, interval: 5m, app: [a]}",
      adds: ["--app=a"]),
    Row("purge --root x --yes", "purge: {root: /d, until-free: 50}"),
    Row("purge --device b", "purge: {device: a, yes: true, free: 1G}"),
    Row("purge --layout xdg", "purge: {layout: snap, yes: true}", adds: []),
    Row("purge --app b", "purge: {app: [a], yes: true, level: critical}"),
    // It restricts the goal.
    Row("purge --root x --free 1G", "purge: {root: /d, level: low}", adds: ["--level=low"]),
    Row("purge --root x --yes", "purge: {root: /d, level: low}"),
    Row("purge --root x --free 1G", "purge: {root: /d, level: critical}"),
    Row("purge --free 5G", "purge: {free: 1G, yes: true}"),
    Row("purge --level critical", "purge: {level: low, yes: true}"),
    // If the device is not replaced, its settings stay.
    Row(
      "purge --root x", "purge: {yes: true, level: low}", adds: ["--level=low", "--yes"]),
    Row("purge --root x", "profiles: {a: {root: /d}}\npurge: {yes: true}", adds: ["--yes"]),
    Row(
      "purge --profile a",
      "root: /d\npurge: {yes: true}\nprofiles: {a: {root: /e, purge: {yes: true}}}",
      adds: ["--root=/e", "--yes"]),
    Row(
      "purge --profile a", "root: /d\npurge: {yes: true}\nprofiles: {a: {root: /e}}",
      adds: ["--root=/e"]),
    Row(
      "uninstall x --root x", "root: /d\nforce: true\nuninstall: {no-snapshot: true}"),
    Row("update x --root x", "update: {root: /d, strict: true, allow-downgrade: true}"),
    Row("rollback x --root x", "rollback: {root: /d, with-groups: true}"),
    Row("backup --root x", "backup: {root: /d, strict: true}", adds: ["--strict"]),
    Row("trash empty --root x", "root: /d\nolder-than: 7d", adds: ["--older-than=7d"]),
    Row("interapp inbox clean --app b", "interapp: {inbox: {clean: {app: a, yes: true}}}"),
    Row(
      "migrate --from a --to b --all",
      "migrate: {to: /d, force: true, no-snapshot: true, allow-downgrade: true}"),
    // A command without that option does not have that target.
    Row(
      "restore latest --profile a",
      "root: /d\nrestore: {in-place: true, force: true}\nprofiles: {a: {root: /e}}",
      adds: ["--in-place", "--force"]),
  ])
  func anotherDeviceOrAppDropsTheSettingsOfTheFirst(_ row: Row) throws {
    #expect(try added(row).sorted() == row.added.sorted(), "\(row.line): \(row.configuration)")
  }

  @Test(arguments: [
    Row("mirror --to /c", "to: /b\nmirror: {allow-large-removal: true}"),
    Row("mirror --to /c --repo /d", "mirror: {repo: /b, allow-large-removal: true}"),
    Row(
      "forget --repo /c", "repo: /b\nforget: {keep-last: 1, prune: true, allow-last: true}",
      adds: ["--keep-last=1", "--prune"]),
    Row(
      "forget --tag y", "forget: {keep-last: 1, tag: [x], allow-last: true}",
      adds: ["--keep-last=1"]),
    Row(
      "forget --host y", "forget: {keep-last: 1, tag: [x], allow-last: true}",
      adds: ["--keep-last=1", "--tag=x", "--allow-last"]),
    Row("repair snapshots --repo /c", "repo: /b\nrepair: {snapshots: {forget: true}}"),
    Row(
      "repair snapshots", "repo: /b\nrepair: {snapshots: {forget: true}}",
      adds: ["--configured-repo=/b", "--forget"]),
  ])
  func anotherRepositoryDropsTheSettingsOfTheFirst(_ row: Row) throws {
    #expect(try added(row).sorted() == row.added.sorted(), "\(row.line): \(row.configuration)")
  }

  @Test(arguments: [
    // The bucket options in one part belong together.
    Row(
      "mirror", "s3-profile: a\nmirror: {s3-endpoint: https://b, s3-region: r}",
      adds: ["--s3-endpoint=https://b", "--s3-region=r"]),
    Row(
      "check", "read-data: true\ncheck: {read-data-subset: 10%}", adds: ["--read-data-subset=10%"]),
    Row(
      "check --profile all",
      "check: {read-data-subset: 10%}\nprofiles: {all: {read-data: true}}", adds: ["--read-data"]),
    Row(
      "check", "check: {read-data: false}\nread-data-subset: 10%", adds: ["--read-data-subset=10%"]),
    Row("restore latest", "to: /b\nrestore: {in-place: true}", adds: ["--in-place"]),
    // Contradictory options in one part are a mistake in it.
    Row(
      "check", "check: {read-data: true, read-data-subset: 10%}",
      adds: ["--read-data", "--read-data-subset=10%"]),
  ])
  func specificSettingsReplaceOthers(_ row: Row) throws {
    #expect(try added(row) == row.added, "\(row.line)")
  }

  /// All names are those of options, so that none is forgotten when an option is renamed.
  @Test func namesAreThoseOfOptions() {
    let options = Set(
      KnownCommand(SandboxctlCommand.self).all.flatMap { $0.options.map(\.name) })
    for command in KnownCommand(SandboxctlCommand.self).all {
      for choice in command.precedence {
        let names = choice.chosen.union(choice.replaced).union(choice.dependent)
          .union(choice.protectiveBeside)
        // Arguments and outputs have names such as "<path>".
        let named = names.filter { !$0.hasPrefix("<") }
        #expect(named.isSubset(of: options), "\(named.subtracting(options))")
      }
    }
    #expect(RetentionOptions.names.isSubset(of: options) && RetentionOptions.names.count == 14)
  }
}
