internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SystemIO

/// The rules of Auto Backup by which an export excludes data.
struct AutoBackupOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Exclude what these rules of Auto Backup exclude: an XML file or an APK (repeatable).",
      valueName: "file"),
    completion: .file())
  var rules: [ByteString] = []

  @Flag(help: "Apply the rules for a transfer to another device (default: for the cloud).")
  var transfer = false

  /// The destination whose rules apply.
  var destination: AutoBackupRules.Destination { transfer ? .transfer : .cloud }

  /// Reads the rules.
  func read() throws(InterchangeError) -> AutoBackupRuleSet {
    var set = AutoBackupRuleSet()
    for path in rules { try set.add(path) }
    return set
  }
}

extension AutoBackupRuleSet {
  /// Warns about parts of the files that Android ignores.
  func showRemarks(_ console: Console, all: Bool = false) {
    console.list(remarks, as: .warning(""), all: all, text: \.description)
  }

  /// Checks that the snapshot has the app of each package, so that no rules are without effect.
  func requireApps(of snapshot: Snapshot, _ name: ByteString) throws {
    let apps = Set(snapshot.apps.map { ByteString($0.identifier) })
    for package in packages.keys.sorted() where !apps.contains(package) {
      throw UsageError(
        .noApp, "the snapshot '\(name)' has no app '\(package)', which '--rules' names",
        hint: "'sandboxctl snapshots show' lists its apps")
    }
  }
}

extension AutoBackupExclusions {
  /// The members of the JSON object of an export.
  var members: [JSON.Member] {
    [
      JSON.Member("excluded", .integer(Int64(entries))),
      JSON.Member("excluded_files", .integer(Int64(files))),
      JSON.Member("excluded_size", .integer(Int64(clamping: size))),
      JSON.Member(
        "exclusions",
        .array(
          groups.map { group in
            .object(
              JSON.path(group.path) + [
                JSON.Member("files", .integer(Int64(group.files))),
                JSON.Member("size", .integer(Int64(clamping: group.size))),
                JSON.Member("reason", .string(group.reason)),
              ])
          })),
    ]
  }
}

extension AutoBackupSink {
  /// Prints what the rules exclude and which parts of the backup Android would ignore.
  func show(of rules: AutoBackupRuleSet, _ console: Console, all: Bool, isQuiet: Bool) {
    if !isQuiet, !console.isJSON, exclusions.files > 0 {
      console.note(
        "the rules exclude \(Sizes.count(exclusions.files, "file")) "
          + "(\(Sizes.text(exclusions.size)))")
      console.list(exclusions.groups, as: .note("excluded: "), all: all) { group in
        "\(group.path): \(Sizes.count(group.files, "file")) (\(Sizes.text(group.size))): "
          + group.reason
      }
    }
    for package in rules.packages.values.sorted(by: { $0.name < $1.name })
    where package.isKeyValueOnly {
      console.warning(
        "\(package.name): Android stores what the app's own code for backups writes instead of "
          + "these files")
    }
    for app in appsOverQuota {
      console.warning(
        "\(app.name): \(Sizes.text(app.size)) are more than the "
          + "\(Sizes.text(AutoBackupQuota.bytes)) that Android stores in the cloud: it would store "
          + "none of them")
    }
    let unrestorable = unrestorablePackages.map {
      PathRemark(
        path: $0, remark: "Android does not restore this package: its certificates are not known")
    }
    console.remarks(unrestorable, as: .warning(""), all: all)
  }
}
