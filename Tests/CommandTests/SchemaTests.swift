import Foundation
import SystemIO
import TestSupport
import Testing

/// The JSON output of all commands matches docs/json: each line of each run, including errors and
/// warnings, is validated against the command's schema.
struct SchemaTests {
  /// A run and its exit status. Arguments contain no spaces; `SchemaFixture` replaces `{…}` in a
  /// line.
  typealias Run = (line: String, code: Int32)

  /// Runs that produce each member at least once, in a working order. The words of a command,
  /// joined by hyphens, name its schema.
  static let runs: [(command: String, runs: [Run])] = [
    // Its lines are validated in `MountCommandTests`, since it runs until it is unmounted.
    ("mount", [("mount nowhere --json --repo repo", 2)]),
    (
      "init",
      [
        ("init other --plain --json", 0), ("init repo --plain --json", 1), ("init x --json", 2),
        ("init x --passphrase-file one --json", 2),
        ("init secret --passphrase-file one --recovery-key rescue --json", 0),
      ]
    ),
    (
      "key-add",
      [
        ("key add more --passphrase-file one --new-passphrase-file two --json --repo secret", 0),
        ("key add more --new-passphrase-file two --json --repo secret", 12),
        ("key add next --passphrase-file two --json --repo secret", 2),
        ("key add x --passphrase-file wrong --new-passphrase-file two --json --repo secret", 12),
      ]
    ),
    (
      "key-change",
      [
        ("key change more --identity rescue --new-passphrase-file one --json --repo secret", 0),
        ("key change --passphrase-file wrong --new-passphrase-file one --json --repo secret", 2),
        ("key change more --new-passphrase-file one --identity one --json --repo secret", 1),
      ]
    ),
    (
      "key-trust",
      [
        ("key trust --json --repo secret", 0),
        (
          "key trust sbxsig184qp0slggwy44y4hp2n56xm7hjwfstx09mzfdrxqe42lz2h5vcxqat6kr0 --name nas --json --repo secret",
          0
        ),
        ("key trust x --json --repo secret", 2),
      ]
    ),
    (
      "key-list", [("key list --json --repo secret", 0), ("key list --json --repo nowhere", 10)]
    ),
    (
      "key-untrust",
      [
        (
          "key untrust sbxsig184qp0slggwy44y4hp2n56xm7hjwfstx09mzfdrxqe42lz2h5vcxqat6kr0 --json --repo secret",
          0
        ), ("key untrust x --json --repo secret", 2),
      ]
    ),
    (
      "key-show-recipient",
      [
        ("key show-recipient --json --repo secret", 0),
        ("key show-recipient --json --repo repo", 1),
      ]
    ),
    (
      "key-remove",
      [
        ("key remove more --identity rescue --json --repo secret", 0),
        ("key remove more --identity rescue --json --repo secret", 1),
      ]
    ),
    (
      "backup",
      [("backup --layout folder --root odd --repo secret --passphrase-file one --json", 0)]
    ),
    (
      "key-rotate",
      [
        ("key rotate --passphrase-file one --recovery-key next --json --repo secret", 0),
        ("key rotate --identity next --recovery-key x --json --repo secret", 12),
        ("key rotate --passphrase-file one --json --repo secret", 2),
      ]
    ),
    (
      "key-rewrap",
      [
        ("key rewrap --dry-run --passphrase-file one --json --repo secret", 0),
        ("key rewrap --passphrase-file one --json --repo secret", 0),
        ("key rewrap --json --repo secret", 12),
      ]
    ),
    ("sample", [("sample again --json", 0), ("sample again --day 1 --json", 0)]),
    (
      "scenario-run",
      [
        ("scenario run purge-takes-caches-only --json", 0),
        ("scenario run missing.yaml --json", 1),
      ]
    ),
    ("scenario-list", [("scenario list --json", 0)]),
    ("scenario-init", [("scenario init --root again --json", 0)]),
    (
      "apps",
      [
        ("apps --root device --json", 0), ("apps --root odd --layout folder --json", 0),
        ("apps \(SnapTests.device) --json", 0), ("apps \(SchemaFixture.flatpakDevice) --json", 0),
        ("apps \(SchemaFixture.homeDevice) --json", 0),
        ("apps \(SchemaFixture.systemDevice) --json", 0),
      ]
    ),
    (
      "classify",
      [
        ("classify --root device --json", 0), ("classify --root device --summary --json", 0),
        ("classify --root device --findings --json", 0), ("classify --root nowhere --json", 1),
        ("classify --layout folder --root guarded --json", 0),
      ]
    ),
    (
      "audit",
      [
        ("audit --root device --json", 0), ("audit --root device --format json --quiet", 0),
        ("audit --root device --json --fail-on warning", 5),
        ("audit \(SnapTests.device) --json", 0), ("audit --root device --json --repo nowhere", 10),
        ("audit --root device --json --baseline one", 1),
        ("audit --root device --json --format sarif", 2),
      ]
    ),
    (
      "exclude",
      [
        ("exclude darkroom/Documents/Albums --root device --json --dry-run", 0),
        ("exclude darkroom/Documents/none --root device --json", 1),
        ("exclude darkroom/Documents --root device --json", 1),
        ("exclude darkroom/Documents/none darkroom/Documents/DCIM --root device --json", 3),
      ]
    ),
    (
      "include",
      [
        ("include darkroom/Documents/DCIM/100APPLE --root device --json", 0),
        ("include darkroom/Documents/DCIM --root device --json", 0),
        ("include darkroom/Documents/none --root device --json", 1),
      ]
    ),
    (
      "explain",
      [
        ("explain --root device --json notebook/Library/Caches", 0),
        ("explain --root device --json notebook/Documents/none", 0),
        ("explain --layout folder --root guarded --json folders/guarded/secret", 0),
        ("explain --root device --json --purge notebook/Documents/none", 0),
        ("explain --root device --json --purge notebook/Documents", 0),
        ("explain --root device --json --purge notebook/Library/Caches", 0),
        ("explain --root device --json --purge reader/tmp/CFNetworkDownload_d4E5f6.tmp", 0),
        (
          "explain --root device --json apps/org.example.darkroom/data/Documents/x --exclude *.x", 0
        ),
      ]
    ),
    (
      "interapp-handlers",
      [
        ("interapp handlers --type public.plain-text --root device --json", 0),
        ("interapp handlers --type com.example.none --root device --json", 5),
        ("interapp handlers --file New.app --root device --json", 5),
        ("interapp handlers --file New.app/Info.plist --root device --json", 5),
        ("interapp handlers --scheme feed --root device --json", 0),
        ("interapp handlers --url https://maps.apple.com/ --root device --json", 0),
        ("interapp handlers --file nowhere --root device --json", 1),
        ("interapp handlers --type x --root device --json", 2),
        ("interapp handlers --root device --json", 2),
      ]
    ),
    (
      "interapp-deliver",
      [
        ("interapp deliver New.app/Info.plist --to notebook --root device --dry-run --json", 1),
        ("interapp deliver text.txt --to notebook --root device --json", 0),
        ("interapp deliver text.txt text.txt --to notebook --root device --json", 0),
        ("interapp deliver text.txt --to notebook --root device --dry-run --json", 0),
        ("interapp deliver text.txt --to nobody --root device --json", 1),
      ]
    ),
    (
      "interapp-inbox-list",
      [("interapp inbox list --root device --json", 0)]
    ),
    (
      "interapp-inbox-check",
      [("interapp inbox check --app notebook --root device --json", 0)]
    ),
    (
      "interapp-inbox-claim",
      [
        ("interapp inbox claim text.txt --app notebook --root device --dry-run --json", 0),
        ("interapp inbox claim text.txt --app notebook --root device --json", 0),
        ("interapp inbox claim text.txt --app notebook --root device --json", 1),
        ("interapp inbox claim text.txt --root device --json", 2),
      ]
    ),
    (
      "interapp-inbox-clean",
      [
        ("interapp inbox clean --older-than 0s --root device --dry-run --json", 0),
        ("interapp inbox clean --older-than 0s --root device --json", 2),
        ("interapp inbox clean --older-than 0s --yes --root device --json", 0),
      ]
    ),
    (
      "interapp-open",
      [
        ("interapp open notebook://u:p@h:1/a;b?c=1&d#e --root device --json", 0),
        ("interapp open feed:x --state background --root device --json", 0),
        ("interapp open mailto:a@example.com --root device --json", 0),
        ("interapp open nobody:x --root device --json", 5),
        ("interapp open notebook:%0 --root device --json", 2),
      ]
    ),
    (
      "interapp-share",
      [
        ("interapp share New.app/Info.plist --root device --json", 5),
        (
          "interapp share text:x url:http://a/ page:http://a/ --exclude com.none --root device --json",
          5
        ), ("interapp share text:x --root device --json", 0),
        ("interapp share nowhere --root device --json", 1),
        ("interapp share url:x --root device --json", 2),
      ]
    ),
    (
      "interapp-extensions",
      [
        ("interapp extensions --root device --json", 0),
        ("interapp extensions --app notebook --point com.none --root device --json", 0),
        ("interapp extensions --app none --root device --json", 1),
      ]
    ),
    (
      "interapp-groups",
      [
        ("interapp groups --root device --json", 0),
        ("interapp groups --app notebook --root device --json", 0),
        ("interapp groups --root odd --layout folder --json", 2),
      ]
    ),
    (
      "purge",
      [
        ("purge --root device --query --json", 0), ("purge --root device --json", 0),
        ("purge --root device --level critical --json", 2),
        ("purge --root device --level critical --dry-run --json", 0),
        ("purge --root device --free 1TiB --dry-run --json", 5),
        ("purge --root again --level critical --yes --json", 0),
        ("purge --root again --free 1TiB --yes --json", 5),
      ]
    ),
    (
      "update",
      [
        ("update New.app --root again --dry-run --json", 0),
        ("update New.app --root again --repo other --json", 0),
        ("update device --root again --json", 1),
      ]
    ),
    (
      "rollback",
      [
        ("rollback notebook --root again --repo other --dry-run --json", 0),
        ("rollback notebook --root again --repo other --json", 0),
        ("rollback darkroom --root again --repo other --dry-run --json", 1),
      ]
    ),
    (
      "install",
      [
        ("install New.app --root again --dry-run --json", 1),
        ("install Other.app --root again --no-snapshot --json", 0),
      ]
    ),
    (
      "offload",
      [
        ("offload notebook --root again --dry-run --json", 0),
        ("offload notebook --root again --repo other --json", 0),
        ("offload notebook --root again --dry-run --json", 1),
      ]
    ),
    (
      "reinstall",
      [
        ("reinstall New.app --root again --dry-run --json", 0),
        ("reinstall New.app --root again --json", 0),
        ("reinstall New.app --root again --dry-run --json", 1),
      ]
    ),
    (
      "uninstall",
      [
        ("uninstall notebook --root again --dry-run --json", 0),
        ("uninstall notebook --root again --repo other --json", 0),
      ]
    ),
    ("policy-list", [("policy list --json", 0)]), ("policy-show", [("policy show ios --json", 0)]),
    ("policy-lint", [("policy lint ios --json", 0), ("policy lint bad.yaml --json", 5)]),
    ("policy-test", [("policy test ios --json", 0), ("policy test wrong.yaml --json", 5)]),
    (
      "backup",
      [
        ("backup --root device --repo repo --dry-run --json", 0),
        ("backup --root device --repo s3://bucket/place --dry-run --json", 0),
        ("backup --root device --repo repo --json --tag a", 0),
        ("backup --root device --repo repo --json --fail-if-unchanged", 4),
        ("backup --layout folder --root odd --repo repo --json", 0),
        ("backup --root device --repo nowhere --json", 10),
        ("backup --layout folder --root guarded --repo guarded-repo --json --locked", 3),
        ("backup --layout folder --root guarded --repo guarded-repo --dry-run --json --locked", 0),
        ("backup --layout folder --root guarded --repo guarded-repo --json", 0),
      ]
    ),
    (
      "snapshots-list", [("snapshots --json --repo repo", 0), ("snapshots --json --repo none", 10)]
    ),
    (
      "snapshots-show",
      [
        ("snapshots show latest --json --repo repo", 0),
        ("snapshots show {device} --json --repo repo", 0),
        ("snapshots show latest --json --repo snaps", 0),
        ("snapshots show latest --json --repo flats", 0),
      ]
    ),
    (
      "ls",
      [
        ("ls latest --recursive --json --repo repo", 0),
        ("ls latest --recursive --json --repo guarded-repo", 0),
        ("ls {device} --recursive --json --repo repo", 0), ("ls 00000 --json --repo repo", 1),
      ]
    ),
    ("find", [("find ** --json --repo repo", 0), ("find [ --json --repo repo", 2)]),
    (
      "versions",
      [
        ("versions folders/odd/link --json --repo repo", 0),
        ("versions apps/org.example.notebook/data/Documents --json --repo repo", 0),
        ("versions folders/odd/nothing --json --repo repo", 1),
      ]
    ),
    ("diff", [("diff {device} latest --metadata --json --repo repo", 0)]),
    (
      "stats",
      [
        ("stats --json --repo repo", 0), ("stats latest --json --repo repo", 0),
        ("stats --growth --json --repo repo", 0),
      ]
    ),
    (
      "snapshots-pin",
      [
        ("snapshots pin latest latest --json --repo repo", 0),
        ("snapshots pin ffffffff --json --repo repo", 1),
      ]
    ),
    (
      "snapshots-unpin",
      [
        ("snapshots unpin latest --json --repo repo", 0),
        ("snapshots unpin latest --json --repo repo", 0),
      ]
    ),
    (
      "forget",
      [
        ("forget --keep-daily 2 --keep-within 1y --dry-run --json --repo repo", 0),
        ("forget --keep-last 1 --sizes --dry-run --json --repo repo", 0),
        ("forget --keep-tag none --json --repo repo", 3),
        ("forget {device} --allow-last --dry-run --json --repo repo", 0),
        ("forget --json --repo repo", 2),
        ("forget --keep-last 1 --group-by device --json --repo other", 0),
      ]
    ),
    (
      "check",
      [
        ("check --read-data --json --repo repo", 0),
        ("check --append-only --json --repo repo", 5),
        ("check --append-only --read-data --json --repo repo", 2),
      ]
    ),
    (
      "prune",
      [
        ("prune --json --repo repo", 0), ("prune --dry-run --json --repo repo", 0),
        ("prune --json --repo nowhere", 10), ("prune --max-unused 101% --json --repo repo", 2),
      ]
    ),
    (
      "copy",
      [
        ("copy --to other --dry-run --json --repo repo", 0),
        ("copy --to other --check --json --repo repo", 0),
        ("copy --to other --json --repo repo", 0), ("copy --to repo --json --repo repo", 1),
        ("copy --to nowhere --json --repo repo", 10),
        ("copy latest --to other --tag x --json --repo repo", 2),
      ]
    ),
    (
      "mirror",
      [
        ("mirror --to mirror --dry-run --json --repo repo", 0),
        ("mirror --to mirror --json --repo repo", 0),
        ("mirror --to mirror --json --repo repo", 0),
        ("mirror --to other --json --repo repo", 1),
        ("mirror --to repo/in --json --repo repo", 2),
      ]
    ),
    (
      "export-tar",
      [
        ("export tar {device} device.tar --json --repo repo", 0),
        ("export tar {device} device.tar --json --repo repo", 1),
        ("export tar - --json --repo repo", 2),
      ]
    ),
    (
      "export-zip",
      [
        ("export zip {device}:groups groups.zip --json --repo repo", 0),
        ("export zip {device}:groups groups.zip --json --repo nowhere", 10),
      ]
    ),
    (
      "import-tar",
      [
        ("import tar device.tar --json --repo other", 0),
        ("import tar odd --json --repo other", 1), ("import tar - --json --repo other", 2),
      ]
    ),
    (
      "import-zip",
      [
        ("import zip groups.zip --json --repo other", 0),
        ("import zip device.tar --json --repo other", 1),
      ]
    ),
    (
      "export-itunes",
      [
        (
          "export itunes {device}:apps/org.example.notebook/data/Documents phone --json --repo repo",
          3
        ),
        ("export itunes {device}:groups phone --json --repo repo", 1),
        ("export itunes --json --repo repo", 2),
      ]
    ),
    (
      "import-itunes",
      [
        ("import itunes phone --json --repo other", 0),
        ("import itunes odd --json --repo other", 1),
      ]
    ),
    (
      "export-android",
      [
        (
          "export android {device}:apps/org.example.notebook/data/Documents phone.ab --json --repo repo",
          3
        ),
        (
          "export android {device}:notebook ruled.ab --rules rules.xml --json --repo repo", 3
        ),
        ("export android {device} phone.ab --json --repo repo", 1),
      ]
    ),
    (
      "import-android",
      [
        ("import android phone.ab --json --repo other", 0),
        ("import android device.tar --json --repo other", 1),
      ]
    ),
    (
      "import-restic",
      [
        ("import restic old --program ./peer --dry-run --json --repo other", 0),
        ("import restic old --program ./peer --json --repo other", 3),
        ("import restic old --program ./peer --json --repo other", 3),
        ("import restic old --program ./peer --snapshot 00000000 --json --repo other", 1),
        ("import restic old --program ./none --json --repo other", 1),
      ]
    ),
    (
      "import-borg",
      [
        ("import borg old --program ./peer --json --repo other", 3),
        ("import borg old --program ./peer --json --repo nowhere", 10),
      ]
    ),
    (
      "import-kopia",
      [
        ("import kopia --program ./peer --json --repo other", 3),
        ("import kopia --program ./peer --dry-run --json --repo other", 0),
      ]
    ),
    (
      "export-snap",
      [
        ("export snap latest data.snapshot --json --repo snaps", 0),
        ("export snap {device} x.snapshot --json --repo repo", 1),
        ("export snap --json --repo snaps", 2),
      ]
    ),
    (
      "import-snap",
      [
        ("import snap data.snapshot --json --repo other", 0),
        ("import snap device.tar --json --repo other", 1),
      ]
    ),
    (
      "export-xcappdata",
      [
        ("export xcappdata {device} notes.xcappdata --app notebook --json --repo repo", 0),
        ("export xcappdata {device} notes.xcappdata --app notebook --json --repo repo", 1),
        ("export xcappdata x --json --repo repo", 2),
      ]
    ),
    (
      "import-xcappdata",
      [
        ("import xcappdata notes.xcappdata --json --repo other", 0),
        ("import xcappdata odd --json --repo other", 1),
      ]
    ),
    (
      "export-ipa",
      [
        ("export ipa {device} darkroom.ipa --app darkroom --json --repo repo", 0),
        ("export ipa {device} notes.ipa --app notebook --json --repo repo", 3),
      ]
    ),
    (
      "import-ipa",
      [
        ("import ipa darkroom.ipa --json --repo other", 0),
        ("import ipa device.tar --json --repo other", 1),
      ]
    ),
    (
      "export-all",
      [
        ("export all archives --json --repo repo", 0),
        ("export all archives --json --repo repo", 0),
        ("export all repo/in --json --repo repo", 2),
      ]
    ),
    (
      "migrate",
      [
        ("migrate --from host:movers --to flatpak:moved --app firefox --dry-run --json", 3),
        ("migrate --from host:movers --to snap:moved --app firefox --dry-run --json", 0),
        ("migrate --from host:movers --to snap:moved --app firefox --no-snapshot --json", 0),
        ("migrate --from flatpak:flat --to host:moved --all --dry-run --json", 0),
        ("migrate --from host:movers --to flatpak:moved --app nothing --json", 1),
        ("migrate --from host:movers --to flatpak:moved --all --dry-run --json", 0),
        ("migrate --from device --to again --all --dry-run --json", 3),
        ("migrate --from {device} --to again --all --dry-run --json --repo repo", 0),
        ("migrate --from {device} --to again --all --no-snapshot --json --repo repo", 0),
        ("migrate --from host:movers --to flatpak:moved --json", 2),
      ]
    ),
    ("leases", [("leases --json --repo repo", 0), ("leases --json --repo nowhere", 10)]),
    (
      "cache-list",
      [("cache --json --repo repo", 0), ("cache list --json --repo nowhere", 10)]
    ),
    (
      "cache-clear",
      [
        ("cache clear --all --dry-run --json", 0), ("cache clear --json --repo repo", 0),
        ("cache clear --json --repo nowhere", 10),
        ("cache clear ffffffff --json", 1), ("cache clear no --json", 2),
        ("cache clear ffffffff --all --json", 2),
      ]
    ),
    (
      "repair-index",
      [
        ("repair index --json --repo repo", 0), ("repair index --dry-run --json --repo repo", 0),
        ("repair index --json --repo nowhere", 10),
      ]
    ),
    (
      "repair-packs",
      [
        ("repair packs --json --repo repo", 0), ("repair packs --dry-run --json --repo repo", 0),
        ("repair packs --json --repo nowhere", 10),
      ]
    ),
    (
      "repair-snapshots",
      [
        ("repair snapshots --json --repo repo", 0),
        ("repair snapshots --dry-run --json --repo repo", 0),
        ("repair snapshots --json --repo nowhere", 10),
      ]
    ),
    // `ScheduleTests` tests the effects on a user's timers.
    (
      "schedule-install",
      [
        ("schedule install --cron --dry-run --json", 0),
        ("schedule install --systemd --dry-run --json", 0),
        ("schedule install --json --frobnicate", 2),
      ]
    ),
    ("schedule-remove", [("schedule remove --json --frobnicate", 2)]),
    ("schedule-status", [("schedule status --json --frobnicate", 2)]),
    (
      "restore",
      [
        ("restore latest --to back --dry-run --json --repo repo", 0),
        ("restore latest --to back --json --repo repo", 0),
        ("restore latest --to back --overwrite always --delete --json --repo repo", 0),
        ("restore latest --to back --json --delete --repo repo", 2),
        ("restore {device} --to-device device --dry-run --json --repo repo", 0),
        ("restore {device} --to-device device --overwrite always --json --repo repo", 0),
      ]
    ),
    ("recover", [("recover --root device --json", 0), ("recover --root nowhere --json", 1)]),
    ("trash-list", [("trash list --root device --json", 0)]),
    (
      "trash-empty",
      [("trash empty --root device --json", 0), ("trash empty none --root device --json", 1)]
    ),
  ]

  /// Runs on a damaged repository.
  static let damaged: [(command: String, runs: [Run])] = [
    ("check", [("check --read-data --json --repo repo", 13)]),
    ("restore", [("restore latest --to part --json --repo repo", 13)]),
    ("ls", [("ls latest --recursive --json --repo repo", 13)]),
    ("diff", [("diff {device} latest --json --repo repo", 13)]),
    ("find", [("find *.md --json --repo repo", 13)]),
    (
      "stats",
      [("stats latest --json --repo repo", 13), ("stats --growth --json --repo repo", 13)]
    ),
    ("copy", [("copy --to other --json --repo repo", 13)]),
    ("mirror", [("mirror --to mirror --json --repo repo", 13)]),
    (
      "repair-snapshots",
      [
        ("repair snapshots --dry-run --json --repo repo", 13),
        ("repair snapshots --forget --json --repo repo", 13),
      ]
    ),
  ]

  @Test func everyAnswerMatchesItsSchema() throws {
    var fixture = try SchemaFixture()
    for (command, runs) in Self.runs { try fixture.run(command, runs) }
    try fixture.damage()
    for (command, runs) in Self.damaged { try fixture.run(command, runs) }
    let faults = try fixture.validate()
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  @Test func everyCommandWithJSONHasASchemaAndRuns() throws {
    let cli = try CommandLine()
    let help = try cli.json("--experimental-dump-help")
    let commands = Set(Self.commandsWithJSON(try #require(help["command"] as? [String: Any])))
    #expect(commands.count >= 19)
    #expect(commands == Set(Self.runs.map(\.command)), "each command with --json has runs here")
    let directory = Shared.packageRoot.appendingPathComponent("docs/json")
    let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    let schemas = Set(files.filter { $0.hasSuffix(".schema.json") })
    let wanted = commands.union(["app-change", "common", "messages"]).map { "\($0).schema.json" }
    #expect(schemas == Set(wanted), "a schema for each command with --json in docs/json")
    let index = try String(
      contentsOf: directory.appendingPathComponent("README.md"), encoding: .utf8)
    for schema in wanted { #expect(index.contains("(\(schema))"), "\(schema) in README.md") }
  }

  private static func commandsWithJSON(
    _ command: [String: Any], _ path: [String] = []
  ) -> [String] {
    let arguments = command["arguments"] as? [[String: Any]] ?? []
    let hasJSON = arguments.contains { argument in
      (argument["names"] as? [[String: Any]] ?? []).contains { $0["name"] as? String == "json" }
    }
    let below = (command["subcommands"] as? [[String: Any]] ?? []).flatMap { child in
      commandsWithJSON(child, path + [child["commandName"] as? String ?? ""])
    }
    return (hasJSON ? [path.joined(separator: "-")] : []) + below
  }

  /// The validator works: it reports missing members, additional members and wrong types.
  @Test(arguments: [
    (#"{"files":1,"bytes":2}"#, true), (#"{"files":1}"#, false),
    (#"{"files":1,"bytes":"2"}"#, false),
    (#"{"files":1,"bytes":-2}"#, false), (#"{"files":1,"bytes":2,"more":0}"#, false), ("[", false),
  ]) func wrongAnswerIsReported(totals: String, isRight: Bool) throws {
    var fixture = try SchemaFixture(isEmpty: true)
    fixture.add(
      "classify", "a forged line", #"{"class":"cache","keeps":\#(totals),"leaves_out":\#(totals)}"#)
    #expect(try fixture.validate().isEmpty == isRight)
  }

  /// A schema that extends a shared part does not allow arbitrary members.
  @Test func additionalMembersAreReported() throws {
    let entry =
      #""path":"a","type":"fifo","mode":420,"uid":0,"gid":0,"modified":"2026-01-01T00:00:00Z""#
    for (line, isRight) in [("{\(entry)}", true), (#"{\#(entry),"more":0}"#, false)] {
      var fixture = try SchemaFixture(isEmpty: true)
      fixture.add("ls", "a forged line", line)
      #expect(try fixture.validate().isEmpty == isRight)
    }
  }
}
